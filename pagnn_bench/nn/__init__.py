"""Building blocks: partial aggregation, seed-stacked layers, sparse products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pagnn_bench.nn.conv import PaGNNConv

__all__ = ["PaGNNConv"]


def __getattr__(name: str) -> Any:
    # torch_geometric takes seconds to import and only this layer needs it.
    if name == "PaGNNConv":
        from pagnn_bench.nn.conv import PaGNNConv

        return PaGNNConv
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
