"""Who is observed (``observed``), and the graph without the rest (``graph``)."""

from pagnn_bench.missing.graph import FEATURE_NORMS, IncompleteGraph, hide
from pagnn_bench.missing.observed import PATTERNS, Observed, check_missing, draw_observed

__all__ = [
    "FEATURE_NORMS",
    "PATTERNS",
    "IncompleteGraph",
    "Observed",
    "check_missing",
    "draw_observed",
    "hide",
]
