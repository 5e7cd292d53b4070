"""The vocabulary of privacy: relations, units, guarantees, losses, and how they add up."""
