"""Exact channels: every pair of neighbours is read, nothing is sampled."""
