"""Verification and audit: exact channels, replayed pipelines, worst neighbours."""
