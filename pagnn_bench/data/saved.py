"""Read a ``torch_geometric.data.Data``, from a file of ``torch.save`` or from a dataset."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.text import one_line
from pagnn_bench.data.graph import Split
from pagnn_bench.data.raw import RawGraph

if TYPE_CHECKING:
    from torch import Tensor

MASKS = ("train_mask", "val_mask", "test_mask")


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
    if isinstance(data, dict) and all(isinstance(key, str) for key in data):
        data = Data.from_dict(data)
    if not isinstance(data, Data):
        raise RequestError(
            f"data.path={path}: holds a {type(data).__name__}; save one torch_geometric Data with torch.save."
        )
    raw = raw_graph(data, f"data.path={path}", "file")
    given = [key for key in MASKS if _has(data, key)]
    return replace(raw, splits={"file": lambda: _refuse(path, given)}) if given and not raw.splits else raw


def _refuse(path: str, masks: list[str]) -> Split:
    """Masks that are no split must not give way to a random one in silence."""
    what = "has several columns in its masks, one per split"
    if len(masks) < len(MASKS):
        what = f"has only {', '.join(masks)}; a split needs {', '.join(MASKS)}"
    raise RequestError(f"data.path={path}: {what}; data.split=random draws a split.")


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
    if not all(_has(data, key) for key in ("x", "edge_index", "y")):
        raise RequestError(f"{where}: needs node features, links and labels (x, edge_index, y).")
    labels = _array(data, "y", where)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    return RawGraph(
        _features(data, where),
        _array(data, "edge_index", where),
        _whole(labels),
        splits=_splits(data, where, split),
    )


def _features(data: Any, where: str) -> sparse.csr_array:
    """``x``, dense or sparse; NaN is kept as a value."""
    import torch

    x = data.x
    if not isinstance(x, torch.Tensor) or x.dim() != 2:
        found = f"shape {list(x.shape)}" if isinstance(x, torch.Tensor) else f"a {type(x).__name__}"
        raise RequestError(f"{where}: x must be one row of numbers per node, found {found}.")
    x = _plain(x).to_sparse_coo().coalesce()
    return sparse.coo_array((x.values().numpy(), tuple(x.indices().numpy())), shape=tuple(x.shape)).tocsr()


def _splits(data: Any, where: str, name: str) -> dict[str, Callable[[], Split]]:
    """The split that the masks define; none if a mask is lacking, or has several columns, one per split."""
    if not all(_has(data, key) for key in MASKS):
        return {}
    arrays = [_array(data, key, where) for key in MASKS]
    if any(mask.ndim != 1 for mask in arrays):
        return {}
    return {name: lambda: Split(*map(np.flatnonzero, arrays))}


def _has(data: Any, key: str) -> bool:
    return getattr(data, key, None) is not None


def _array(data: Any, key: str, where: str) -> np.ndarray:
    import torch

    value = getattr(data, key)
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        raise RequestError(f"{where}: {key} must be a dense tensor, found {_kind(value)}.")
    return np.asarray(_plain(value).numpy())


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}" if not hasattr(value, "layout") else f"layout {value.layout}"


def _plain(value: Tensor) -> Tensor:
    """Without gradients, in a type that numpy knows."""
    import torch

    value = value.detach()
    return value.float() if value.dtype == torch.bfloat16 else value


def _whole(labels: np.ndarray) -> np.ndarray:
    """Classes given as floating-point numbers, with NaN for unlabelled (GraphLand), as integers."""
    if labels.dtype.kind != "f" or labels.ndim != 1:
        return labels
    filled = np.nan_to_num(labels, nan=-1, posinf=0.5, neginf=0.5)
    return filled.astype(np.int64) if (filled == np.floor(filled)).all() else labels
