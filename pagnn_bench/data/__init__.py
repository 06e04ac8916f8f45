"""Graphs by configuration: ``load_graph`` turns the resolved ``data`` group into a :class:`Graph`.

Imports torch only for ``data=pyg``, files of ``torch.save`` and fetching missing files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pagnn_bench.config.errors import RequestError, refuse
from pagnn_bench.config.identity import LATER_KEYS
from pagnn_bench.config.loading import load_named
from pagnn_bench.config.schema import TEXT, Schema, check_group, one_of
from pagnn_bench.data.amazon import load_amazon
from pagnn_bench.data.custom import load_custom, read_custom
from pagnn_bench.data.graph import Graph, Split
from pagnn_bench.data.planetoid import load_planetoid
from pagnn_bench.data.pyg import PYG, dataset_class, load_pyg, read_pyg
from pagnn_bench.data.raw import ATTRIBUTES, STANDARDISE, RawGraph
from pagnn_bench.data.spatial import READERS, load_spatial
from pagnn_bench.data.splits import drawn_split, split_schema
from pagnn_bench.data.synthetic import SYNTHETIC, load_synthetic
from pagnn_bench.data.table import TABLE_KEYS, load_table, read_table

__all__ = ["Graph", "Loader", "Split", "check_data", "drawn_split", "load_graph", "read_raw"]


@dataclass(frozen=True)
class Loader:
    """How the graphs of one source are loaded.

    Attributes:
        load: makes the graph from the ``data`` group.
        read: reads the user's own file, with names and before encoding; None if the graph has no more to tell.
        names: the datasets it knows; empty if the name is the user's choice.
        published: the names of splits that may come with the data.
        keys: the keys it reads, with their valid values, besides name, split and keys outside a cell's identity.
    """

    load: Callable[[Mapping[str, Any]], Graph]
    names: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    keys: Schema = field(default_factory=dict)
    read: Callable[[Mapping[str, Any]], RawGraph] | None = None


LOADERS = {
    "planetoid": Loader(
        load_planetoid,
        names=("cora", "citeseer", "pubmed"),
        published=("public",),
        keys={"standardise": STANDARDISE},
    ),
    "amazon": Loader(load_amazon, names=("amaphoto", "amacomp"), published=("gcnmf",)),
    "spatial": Loader(load_spatial, names=tuple(READERS), keys={"standardise": STANDARDISE}),
    "synthetic": Loader(load_synthetic, keys=SYNTHETIC),
    "custom": Loader(load_custom, published=("file",), keys=ATTRIBUTES, read=read_custom),
    "table": Loader(load_table, published=("file",), keys=TABLE_KEYS, read=read_table),
    "pyg": Loader(load_pyg, published=("dataset",), keys=PYG, read=read_pyg),
}


def load_graph(config: Mapping[str, Any]) -> Graph:
    """Load the graph that a resolved ``data`` group (plain values) describes.

    Raises:
        RequestError: a value is wrong, or files are missing or damaged.
    """
    check_data(config)
    return _loader(config["source"]).load(config)


def read_raw(config: Mapping[str, Any]) -> RawGraph | None:
    """The graph as in the user's own file; None for built-in datasets and those of plug-ins."""
    read = _loader(config["source"]).read
    return None if read is None else read(config)


def check_data(config: Mapping[str, Any]) -> None:
    """Refuse an invalid ``data`` group, without reading any file."""
    name = config.get("source")
    loader = _loader(name)
    if loader.names:
        one_of(loader.names).check("data.name", config["name"])
    settings = {key: value for key, value in config.items() if key != "content"}  # added by the cell itself
    # The user's own YAML file may be older than a key.
    later = {key: value for key, value in LATER_KEYS["data"].items() if key in loader.keys}
    settings = {**later, **settings}
    schema = {"source": TEXT, **split_schema(loader.published), **loader.keys}
    check_group("data", settings, schema, f"source {name}")
    if name == "pyg":
        dataset_class(config["dataset"])


def _loader(source: Any) -> Loader:
    """A built-in loader by its short name, or another one by its dotted name."""
    if isinstance(source, str) and source in LOADERS:
        return LOADERS[source]
    if not isinstance(source, str) or "." not in source:
        refuse("data.source", source, f"choose one of {', '.join(LOADERS)}, or give a loader as package.NAME")
    loader = load_named("data.source", source)
    if not isinstance(loader, Loader):
        raise RequestError(f"data.source={source}: this is not a pagnn_bench.data.Loader.")
    return loader
