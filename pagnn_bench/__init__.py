"""pagnn-bench: train PaGNN and its rivals on graphs with missing node attributes, reproducibly."""

__version__ = "0.1.0"
