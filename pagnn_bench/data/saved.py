"""Read a ``torch_geometric.data.Data``, from a file of ``torch.save`` or from a dataset."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.text import one_line
from pagnn_bench.data.graph import Split
from pagnn_bench.data.raw import RawGraph


def read_saved(path: str, content: bytes) -> RawGraph:
    """The graph in a file of ``torch.save``: a ``Data``, or the dictionary of its tensors.

    Such a file is a pickle, and a pickle can run anything. So only tensors, plain values, the classes inside a ``Data``
    and those that torch_geometric itself declares safe are loaded.
    """
    import torch
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    # Only classes not allowed yet: the block forbids its classes at the end, and torch_geometric, which has allowed
    # some of them for good, would then fall back to reading its own files the unsafe way.
    allowed = torch.serialization.get_safe_globals()
    classes = [kind for kind in (Data, DataEdgeAttr, DataTensorAttr, GlobalStorage) if kind not in allowed]
    with torch.serialization.safe_globals(classes), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's on other pickles: the message below is enough
        try:
            data = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        except Exception as error:  # a damaged pickle may raise anything
            raise RequestError(
                f"data.path={path}: cannot be loaded as a torch_geometric Data of plain tensors "
                f"({_what_else(content) or one_line(str(error))[:200]})."
            ) from error
    if isinstance(data, dict):
        data = Data.from_dict(data)
    if not isinstance(data, Data):
        raise RequestError(
            f"data.path={path}: holds a {type(data).__name__}; save one torch_geometric Data with torch.save."
        )
    return raw_graph(data, f"data.path={path}", "file")


def _what_else(content: bytes) -> str:
    """What the file holds besides plain tensors; torch's own message would explain how to load it anyway."""
    from torch.serialization import get_unsafe_globals_in_checkpoint

    try:
        foreign = get_unsafe_globals_in_checkpoint(io.BytesIO(content))
    except Exception:  # as above
        return "it is not a file of torch.save"
    return f"it holds {', '.join(sorted(foreign))}" if foreign else ""


def raw_graph(data: Any, where: str, split: str) -> RawGraph:
    """Take over features (NaN = missing), links and labels of a ``Data``.

    Args:
        data: with ``x``, ``edge_index``, ``y`` and perhaps ``train_mask``, ``val_mask``, ``test_mask``.
        where: the key and value that named it, for messages.
        split: the name of the split that its masks define, if they are one-dimensional.
    """
    if any(getattr(data, key, None) is None for key in ("x", "edge_index", "y")):
        raise RequestError(f"{where}: needs node features, links and labels (x, edge_index, y).")
    if data.x.dim() != 2:
        raise RequestError(
            f"{where}: x must be one row of numbers per node, found shape {list(data.x.shape)}."
        )
    x = data.x.detach().to_sparse_coo().coalesce()  # dense or sparse; NaN is kept as a value
    features = sparse.coo_array(
        (x.values().numpy(), tuple(x.indices().numpy())), shape=tuple(x.shape)
    ).tocsr()
    labels = data.y.reshape(len(data.y), -1).squeeze(1).numpy()  # [n] or [n, 1]
    masks: list[Any] = [getattr(data, f"{part}_mask", None) for part in ("train", "val", "test")]
    splits: dict[str, Callable[[], Split]] = {}
    if all(mask is not None and mask.dim() == 1 for mask in masks):
        splits[split] = lambda: Split(*(np.flatnonzero(mask.numpy()) for mask in masks))
    return RawGraph(features, data.edge_index.numpy(), _whole(labels), splits=splits)


def _whole(labels: np.ndarray) -> np.ndarray:
    """Classes given as floating-point numbers, with NaN for unlabelled (GraphLand), as integers."""
    if labels.dtype.kind != "f" or labels.ndim != 1:
        return labels
    filled = np.nan_to_num(labels, nan=-1, posinf=0.5, neginf=0.5)
    return filled.astype(np.int64) if (filled == np.floor(filled)).all() else labels
