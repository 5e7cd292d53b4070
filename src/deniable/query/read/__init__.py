"""Text, or a builder, becomes a relation of canonical values: names resolved, clauses checked."""
