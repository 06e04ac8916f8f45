"""Everything on disk: the store, its collected form, the heartbeat of runs, provenance, the cache. Knows no torch."""
