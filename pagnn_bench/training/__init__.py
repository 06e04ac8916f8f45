"""The training loop of all methods, and the stopping rules."""
