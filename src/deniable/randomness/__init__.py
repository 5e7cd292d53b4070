"""Random bytes, exact integer samplers, and the lattice of real releases."""
