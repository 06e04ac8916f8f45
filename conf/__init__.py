"""Hydra's configuration groups, installed as ``pagnn_bench.conf``."""
