"""One training loop for all methods, and the stopping rules."""
