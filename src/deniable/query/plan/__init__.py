"""What is counted, what one unit adds to it, and what is made of it."""
