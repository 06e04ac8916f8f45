"""Graphs by configuration: ``load_graph`` turns the resolved ``data`` group into a :class:`Graph`.

Nothing here imports torch, unless ``data=pyg`` or a file of torch asks for it, or missing files have to be fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pagnn_bench.config.identity import LATER_KEYS
from pagnn_bench.config.schema import Schema, check_group, one_of
from pagnn_bench.data.amazon import load_amazon
from pagnn_bench.data.custom import load_custom
from pagnn_bench.data.graph import Graph, Split
from pagnn_bench.data.planetoid import load_planetoid
from pagnn_bench.data.pyg import PYG, dataset_class, load_pyg
from pagnn_bench.data.raw import ATTRIBUTES
from pagnn_bench.data.splits import drawn_split, split_schema
from pagnn_bench.data.synthetic import SYNTHETIC, load_synthetic
from pagnn_bench.data.table import TABLE_KEYS, load_table

__all__ = ["Graph", "Split", "check_data", "drawn_split", "load_graph"]


@dataclass(frozen=True)
class Loader:
    """How the graphs of one source are loaded.

    Attributes:
        load: makes the graph from the ``data`` group.
        names: the datasets it knows; empty if the name is the user's choice.
        published: the names of splits that may come with the data.
        keys: what it reads besides its name, its split and what is no part of an identity, and the valid values.
    """

    load: Callable[[Mapping[str, Any]], Graph]
    names: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    keys: Schema = field(default_factory=dict)


LOADERS = {
    "planetoid": Loader(load_planetoid, names=("cora", "citeseer"), published=("public",)),
    "amazon": Loader(load_amazon, names=("amaphoto", "amacomp"), published=("gcnmf",)),
    "synthetic": Loader(load_synthetic, keys=SYNTHETIC),
    "custom": Loader(load_custom, published=("file",), keys=ATTRIBUTES),
    "table": Loader(load_table, published=("file",), keys=TABLE_KEYS),
    "pyg": Loader(load_pyg, published=("dataset",), keys=PYG),
}


def load_graph(config: Mapping[str, Any]) -> Graph:
    """Load the graph that a resolved ``data`` group (plain values) describes.

    Raises:
        RequestError: a value is wrong, or files are missing or damaged.
    """
    check_data(config)
    return LOADERS[config["source"]].load(config)


def check_data(config: Mapping[str, Any]) -> None:
    """Refuse a ``data`` group that no graph can be made from, as far as can be told without reading a file."""
    known = one_of(LOADERS)
    name = known.check("data.source", config.get("source"))
    loader = LOADERS[name]
    if loader.names:
        one_of(loader.names).check("data.name", config["name"])
    settings = {key: value for key, value in config.items() if key != "content"}  # noted by the cell itself
    # A YAML file of the user's own may be older than a key.
    later = {key: value for key, value in LATER_KEYS["data"].items() if key in loader.keys}
    settings = {**later, **settings}
    schema = {"source": known, **split_schema(loader.published), **loader.keys}
    check_group("data", settings, schema, f"source {name}")
    if name == "pyg":
        dataset_class(config["dataset"])
