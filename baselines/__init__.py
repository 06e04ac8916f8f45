"""The rivals of PaGNN and the controls, one file each; installed as ``pagnn_bench.baselines``."""
