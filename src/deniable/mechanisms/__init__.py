"""Mechanisms: public parameters frozen, private data as arguments, exact noise."""
