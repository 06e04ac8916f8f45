"""Plan, execute, outcome: what is wanted, what is done, and where the rest is trained."""
