"""From noisy statistics to the answer, or to what it would be."""
