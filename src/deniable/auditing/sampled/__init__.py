"""Black boxes: called many times on neighbours, and a claim that stands or falls."""
