"""Conversions between ways of stating a loss. Each works on plain numbers and rounds soundly."""
