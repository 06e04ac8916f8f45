"""Plan, execute, outcome: what is wanted, what is done, who trains the rest, and where."""
