"""Graphs by configuration: ``load_graph`` turns the resolved ``data`` group into a :class:`Graph`.

Nothing here imports torch, unless ``data=pyg`` asks for it or missing files have to be fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.schema import check_keys
from pagnn_bench.data.amazon import load_amazon
from pagnn_bench.data.custom import load_custom
from pagnn_bench.data.graph import Graph, Split
from pagnn_bench.data.planetoid import load_planetoid
from pagnn_bench.data.pyg import dataset_class, load_pyg
from pagnn_bench.data.splits import check_split
from pagnn_bench.data.synthetic import load_synthetic

__all__ = ["Graph", "Split", "check_data", "load_graph"]


@dataclass(frozen=True)
class Source:
    """Where a graph comes from.

    Attributes:
        load: makes the graph from the ``data`` group.
        names: the datasets it knows; empty if the name is the user's choice.
        published: the names of splits that may come with the data.
        keys: what it reads besides its name, its split and what is no part of an identity.
    """

    load: Callable[[Mapping[str, Any]], Graph]
    names: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    keys: frozenset[str] = frozenset()


SOURCES = {
    "planetoid": Source(load_planetoid, names=("cora", "citeseer"), published=("public",)),
    "amazon": Source(load_amazon, names=("amaphoto", "amacomp"), published=("gcnmf",)),
    "synthetic": Source(
        load_synthetic,
        keys=frozenset(
            {
                *("graph_seed", "num_nodes", "num_classes", "num_features"),
                *("avg_degree", "homophily", "degree_spread", "words_per_node", "word_signal"),
            }
        ),
    ),
    "custom": Source(load_custom, published=("file",)),
    "pyg": Source(load_pyg, published=("dataset",), keys=frozenset({"dataset", "args"})),
}
SPLIT_KEYS = {"split", "split_seed", "train_per_class", "num_val", "num_test"}


def load_graph(config: Mapping[str, Any]) -> Graph:
    """Load the graph that a resolved ``data`` group (plain values) describes.

    Raises:
        RequestError: a value is wrong, or files are missing or damaged.
    """
    check_data(config)
    return SOURCES[config["source"]].load(config)


def check_data(config: Mapping[str, Any]) -> None:
    """Refuse a ``data`` group that no graph can be made from, as far as can be told without reading a file."""
    name = config.get("source")
    if name not in SOURCES:
        raise RequestError(f"data.source={name}: choose from {', '.join(SOURCES)}.")
    source = SOURCES[name]
    settings = {key: value for key, value in config.items() if key != "content"}  # noted by the cell itself
    check_keys("data", settings, {"source"} | SPLIT_KEYS | source.keys, f"source {name}")
    if source.names and config["name"] not in source.names:
        raise RequestError(
            f"data.name={config['name']}: data.source={name} knows {' and '.join(source.names)}."
        )
    check_split(config, source.published)
    if name == "pyg":
        if not isinstance(config["args"], Mapping):
            raise RequestError(
                f"data.args={config['args']}: give arguments by name, such as {{name: Cora_ML}}."
            )
        dataset_class(config["dataset"])
