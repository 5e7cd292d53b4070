"""What one release did: frozen data from which every guarantee is read."""
