"""Building blocks: partial aggregation, seed-stacked layers, sparse products."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pagnn_bench.nn.conv import PaGNNConv
    from pagnn_bench.nn.model import PaGNN

__all__ = ["PaGNN", "PaGNNConv"]

# Only these need torch_geometric, which takes seconds to import.
LATER = {"PaGNN": "pagnn_bench.nn.model", "PaGNNConv": "pagnn_bench.nn.conv"}


def __getattr__(name: str) -> Any:
    if name in LATER:
        return getattr(importlib.import_module(LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
