"""Engines: they run SQL and return Arrow; they know nothing of ε and draw no noise."""
