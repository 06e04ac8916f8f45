"""Graphs by configuration: ``load_graph`` turns the resolved ``data`` group into a :class:`Graph`.

Nothing here imports torch, unless ``data=pyg`` asks for it or missing files have to be fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pagnn_bench.data.amazon import load_amazon
from pagnn_bench.data.custom import load_custom
from pagnn_bench.data.graph import Graph, Split
from pagnn_bench.data.planetoid import load_planetoid
from pagnn_bench.data.pyg import load_pyg
from pagnn_bench.data.synthetic import load_synthetic
from pagnn_bench.errors import RequestError

__all__ = ["Graph", "Split", "load_graph"]

LOADERS: dict[str, Callable[[Mapping[str, Any]], Graph]] = {
    "planetoid": load_planetoid,
    "amazon": load_amazon,
    "synthetic": load_synthetic,
    "custom": load_custom,
    "pyg": load_pyg,
}


def load_graph(config: Mapping[str, Any]) -> Graph:
    """Load the graph that a resolved ``data`` group (plain values) describes.

    Raises:
        RequestError: a value is wrong, or files are missing or damaged.
    """
    source = config["source"]
    if source not in LOADERS:
        raise RequestError(f"data.source={source}: choose from {', '.join(LOADERS)}.")
    return LOADERS[source](config)
