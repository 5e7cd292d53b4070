"""A plan's statements, and the draws through the gate."""
