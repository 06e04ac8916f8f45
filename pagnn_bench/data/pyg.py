"""``data=pyg``: any node classification dataset of torch_geometric, by the name of its class."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.schema import Schema, Valid
from pagnn_bench.data.files import data_root
from pagnn_bench.data.graph import Graph, Split, build_graph, check_labels
from pagnn_bench.data.splits import choose_split

PYG: Schema = {
    "dataset": Valid(
        lambda value: isinstance(value, str),
        "give the name of a class in torch_geometric.datasets, such as CitationFull, or the full path of another "
        "dataset class",
    ),
    "args": Valid(
        lambda value: isinstance(value, Mapping), "give arguments by name, such as {name: Cora_ML}"
    ),
}


def load_pyg(config: Mapping[str, Any]) -> Graph:
    """Let torch_geometric download and process the dataset, and take over features, links and labels.

    Masks that come with it can be chosen as ``data.split=dataset`` if they are one-dimensional.
    """
    name, dataset = config["name"], config["dataset"]
    data = _first_graph(config)
    if any(getattr(data, key, None) is None for key in ("x", "edge_index", "y")):
        raise RequestError(
            f"data.dataset={dataset}: needs node features, links and labels (x, edge_index, y)."
        )

    x = data.x.to_sparse_coo().coalesce()  # some datasets come dense, some sparse
    features = sparse.coo_array(
        (x.values().numpy(), tuple(x.indices().numpy())), shape=tuple(x.shape)
    ).tocsr()
    labels = check_labels(name, data.y.reshape(len(data.y), -1).squeeze(1).numpy())  # [n] or [n, 1]
    masks: list[Any] = [getattr(data, f"{part}_mask", None) for part in ("train", "val", "test")]
    published: dict[str, Callable[[], Split]] = {}
    if all(mask is not None and mask.dim() == 1 for mask in masks):
        published["dataset"] = lambda: Split(*(np.flatnonzero(mask.numpy()) for mask in masks))
    return build_graph(
        name, features, data.edge_index.numpy(), labels, choose_split(config, labels, published)
    )


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
