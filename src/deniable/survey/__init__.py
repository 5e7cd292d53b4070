"""Sensitive surveys: randomised answers, and what many of them tell."""
