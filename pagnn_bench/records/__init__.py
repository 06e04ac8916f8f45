"""What is kept: the store, its collected form, the heartbeat of runs, provenance, the cache; knows no torch."""
