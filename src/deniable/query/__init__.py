"""From SQL or a builder to a plan, and from a plan to the SQL of an engine."""
