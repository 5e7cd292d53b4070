"""Reconstruction: models fitted to measurements. Nothing here ever sees data."""
