"""Synthetic data and interactive answers: select, measure, reconstruct."""
