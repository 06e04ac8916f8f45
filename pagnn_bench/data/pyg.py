"""``data=pyg``: any node classification dataset of torch_geometric, by the name of its class."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping
from typing import Any

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.schema import Schema, Valid
from pagnn_bench.data.files import data_root
from pagnn_bench.data.graph import Graph
from pagnn_bench.data.raw import ATTRIBUTES, RawGraph, finish
from pagnn_bench.data.saved import raw_graph

PYG: Schema = {
    "dataset": Valid(
        lambda value: isinstance(value, str),
        "give the name of a class in torch_geometric.datasets, such as CitationFull, or the full path of another "
        "dataset class",
    ),
    "args": Valid(
        lambda value: isinstance(value, Mapping), "give arguments by name, such as {name: Cora_ML}"
    ),
    **ATTRIBUTES,
}


def load_pyg(config: Mapping[str, Any]) -> Graph:
    """Let torch_geometric download and process the dataset, and take over features, links and labels.

    Masks that come with it can be chosen as ``data.split=dataset`` if they are one-dimensional. Features that are NaN
    are missing by nature.
    """
    return finish(config, read_pyg(config))


def read_pyg(config: Mapping[str, Any]) -> RawGraph:
    """The graph as the dataset has it."""
    return raw_graph(_first_graph(config), f"data.dataset={config['dataset']}", "dataset")


def _first_graph(config: Mapping[str, Any]) -> Any:
    """``dataset(root, **args)[0]``, in a folder that no other dataset or argument shares."""
    dataset, args = config["dataset"], config["args"]
    kind = dataset_class(dataset)
    folder = re.sub(r"[^\w.=-]+", "_", "-".join([dataset, *(f"{key}={args[key]}" for key in sorted(args))]))
    place = {"root": str(data_root(config["root"]) / "pyg" / folder)}
    try:
        graphs = kind(**(place if _takes_folder(kind) else {}), **args)
        return graphs[0]
    except Exception as error:  # foreign code: a wrong argument or no network may surface as anything
        reason = " ".join(f"{type(error).__name__}: {error}".split())  # in one line
        raise RequestError(
            f"data.dataset={dataset} data.args={args}: torch_geometric cannot make it ({reason})."
        ) from error


def _takes_folder(kind: Any) -> bool:
    """Graphs that need no files, such as KarateClub, do not."""
    parameters = inspect.signature(kind).parameters.values()
    return any(p.name == "root" or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)


def dataset_class(dataset: str) -> Any:
    """The class that ``data.dataset`` names: inside ``torch_geometric.datasets``, or a full path."""
    module, _, name = dataset.rpartition(".")
    try:
        return getattr(importlib.import_module(module or "torch_geometric.datasets"), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise RequestError(f"data.dataset={dataset}: {PYG['dataset'].choices}.") from error
