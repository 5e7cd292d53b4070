"""Where entries are kept. Stores know rows, not privacy."""
