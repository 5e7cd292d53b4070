"""The algebra of values: few types, total operators, and nothing that an engine casts by itself."""
