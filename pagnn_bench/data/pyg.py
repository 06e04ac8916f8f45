"""``data=pyg``: any node classification dataset of torch_geometric, by the name of its class."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping
from typing import Any

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.schema import Schema, Valid
from pagnn_bench.config.text import one_line
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
    """Let torch_geometric download and process the dataset, and take its features, links and labels.

    ``data.split=dataset`` chooses its masks if they are one-dimensional. NaN features are missing by nature.
    """
    return finish(config, read_pyg(config))


def read_pyg(config: Mapping[str, Any]) -> RawGraph:
    """The graph as in the dataset."""
    return raw_graph(_first_graph(config), f"data.dataset={config['dataset']}", "dataset")


def _first_graph(config: Mapping[str, Any]) -> Any:
    """``dataset(root, **args)[0]``, in a separate folder for every dataset and its arguments."""
    dataset, args = config["dataset"], config["args"]
    kind = dataset_class(dataset)
    folder = re.sub(r"[^\w.=-]+", "_", "-".join([dataset, *(f"{key}={args[key]}" for key in sorted(args))]))
    place = {"root": str(data_root(config["root"]) / "pyg" / folder)}
    try:
        graphs = kind(**(place if _takes_folder(kind) else {}), **args)
        return graphs[0]
    except Exception as error:  # foreign code: a wrong argument or no network may raise anything
        reason = one_line(f"{type(error).__name__}: {error}")
        raise RequestError(
            f"data.dataset={dataset} data.args={args}: torch_geometric cannot load it ({reason})."
        ) from error


def _takes_folder(kind: Any) -> bool:
    """False for graphs that need no files, such as KarateClub."""
    parameters = inspect.signature(kind).parameters.values()
    return any(p.name == "root" or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)


def dataset_class(dataset: str) -> Any:
    """The class named by ``data.dataset``: in ``torch_geometric.datasets``, or by its full path."""
    module, _, name = dataset.rpartition(".")
    try:
        return getattr(importlib.import_module(module or "torch_geometric.datasets"), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise RequestError(f"data.dataset={dataset}: {PYG['dataset'].choices}.") from error
