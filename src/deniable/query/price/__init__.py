"""What a plan costs, which noise that buys, and what is estimated privately first."""
