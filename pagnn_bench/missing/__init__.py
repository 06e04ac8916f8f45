"""What is observed (``mask``, ``observed``, ``mechanisms``, ``natural``); the graph without the rest (``graph``)."""

from pagnn_bench.missing.graph import FEATURE_NORMS, IncompleteGraph, hide
from pagnn_bench.missing.mask import Observed
from pagnn_bench.missing.natural import is_natural, observe, splits_vary
from pagnn_bench.missing.observed import PATTERNS, check_missing, draw_observed, drawn_pattern
from pagnn_bench.missing.scale import standardise

__all__ = [
    "FEATURE_NORMS",
    "PATTERNS",
    "IncompleteGraph",
    "Observed",
    "check_missing",
    "draw_observed",
    "drawn_pattern",
    "hide",
    "is_natural",
    "observe",
    "splits_vary",
    "standardise",
]
