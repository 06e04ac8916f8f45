"""Graphs by configuration: ``load_graph`` turns the resolved ``data`` group into a :class:`Graph`.

Nothing here imports torch, unless ``data=pyg`` asks for it or missing files have to be fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pagnn_bench.cell import check_keys
from pagnn_bench.data.amazon import load_amazon
from pagnn_bench.data.custom import load_custom
from pagnn_bench.data.graph import Graph, Split
from pagnn_bench.data.planetoid import load_planetoid
from pagnn_bench.data.pyg import load_pyg
from pagnn_bench.data.synthetic import load_synthetic
from pagnn_bench.errors import RequestError

__all__ = ["Graph", "Split", "check_data", "load_graph"]

LOADERS: dict[str, Callable[[Mapping[str, Any]], Graph]] = {
    "planetoid": load_planetoid,
    "amazon": load_amazon,
    "synthetic": load_synthetic,
    "custom": load_custom,
    "pyg": load_pyg,
}


SPLITS = {"split", "split_seed", "train_per_class", "num_val", "num_test"}
# What each source reads besides its name, its split and what is no part of an identity.
OWN_KEYS: dict[str, set[str]] = {
    "planetoid": set(),
    "amazon": set(),
    "synthetic": {
        *("graph_seed", "num_nodes", "num_classes", "num_features"),
        *("avg_degree", "homophily", "degree_spread", "words_per_node", "word_signal"),
    },
    "custom": set(),
    "pyg": {"dataset", "args"},
}


def load_graph(config: Mapping[str, Any]) -> Graph:
    """Load the graph that a resolved ``data`` group (plain values) describes.

    Raises:
        RequestError: a value is wrong, or files are missing or damaged.
    """
    check_data(config)
    return LOADERS[config["source"]](config)


def check_data(config: Mapping[str, Any]) -> None:
    """Refuse a ``data`` group whose keys are not those of its source; reads no file."""
    source = config.get("source")
    if source not in LOADERS:
        raise RequestError(f"data.source={source}: choose from {', '.join(LOADERS)}.")
    settings = {key: value for key, value in config.items() if key != "content"}  # noted by the cell itself
    check_keys("data", settings, {"source"} | SPLITS | OWN_KEYS[source], f"source {source}")
