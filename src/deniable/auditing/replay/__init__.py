"""Pipelines run on one table, and replayed on its neighbour."""
