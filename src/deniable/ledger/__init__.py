"""The durable ledger: budgets of populations, what was spent, and the proof of both."""
