"""The graph every method sees, and the one function that builds it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from pagnn_bench.config.errors import RequestError


@dataclass(frozen=True, eq=False)
class Split:
    """Node indices of the three parts, int64, sorted, disjoint.

    Attributes:
        train, val, test: ``[n_train]``, ``[n_val]``, ``[n_test]``.
        drawn: whether it was drawn at random, so that another one would do as well.
        scored: the nodes that count for test accuracy, if not all of ``test``.
    """

    train: np.ndarray
    val: np.ndarray
    test: np.ndarray
    drawn: bool = field(default=False, kw_only=True)
    scored: np.ndarray | None = field(default=None, kw_only=True)

    def everywhere(self, num_nodes: int) -> Split:
        """A split for the same trials and scores in which networks predict every node as a test node."""
        return replace(self, test=np.arange(num_nodes), scored=self.test)

    @property
    def sizes(self) -> tuple[int, int, int]:
        return len(self.train), len(self.val), len(self.test)


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected attributed graph with node labels; make one with :func:`build_graph`.

    Attributes:
        name: the dataset's name in records and tables.
        features: X, ``[n, d]``, float32, without stored zeros, indices sorted; finite, and nothing stored at entries
            that are missing by nature.
        adjacency: A, ``[n, n]``, float32, binary, symmetric, indices sorted; zero diagonal, since the aggregation
            adds I.
        labels: y, ``[n]``, int64 in ``0..num_classes-1``; -1 for a node without a label.
        num_classes: C.
        split: the train, validation and test nodes.
        known: ``[n, d]``, bool, False where an attribute is missing by nature; None if none is.
    """

    name: str
    features: sparse.csr_array
    adjacency: sparse.csr_array
    labels: np.ndarray
    num_classes: int
    split: Split
    known: np.ndarray | None = None

    @property
    def natural_share(self) -> float:
        """Share of entries that are missing by nature."""
        return 0.0 if self.known is None else 1.0 - float(self.known.mean())

    @property
    def num_nodes(self) -> int:
        return int(self.features.shape[0])

    @property
    def num_features(self) -> int:
        return int(self.features.shape[1])

    @property
    def num_edges(self) -> int:
        """Undirected edges: each pair of neighbours counts once."""
        return self.adjacency.nnz // 2

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of everything that can change a result; the same on every host and for every source."""
        parts = {
            "num_classes": np.array([self.num_classes]),
            "features.shape": np.array(self.features.shape),
            "features.indptr": self.features.indptr,
            "features.indices": self.features.indices,
            "features.data": self.features.data,
            "adjacency.indptr": self.adjacency.indptr,
            "adjacency.indices": self.adjacency.indices,
            "labels": self.labels,
            "train": self.split.train,
            "val": self.split.val,
            "test": self.split.test,
        }
        if self.known is not None:
            parts["known"] = np.packbits(self.known)
        sha = hashlib.sha256()
        for key, array in parts.items():
            # scipy picks 32 or 64 bit indices by size and platform: hash one width, one byte order.
            fixed = array.astype("<f4" if array.dtype.kind == "f" else "<i8")
            sha.update(f"{key}[{fixed.size}]".encode())
            sha.update(fixed.tobytes())
        return sha.hexdigest()


def build_graph(
    name: str,
    features: Any,
    edges: np.ndarray,
    labels: np.ndarray,
    split: Split,
    known: np.ndarray | None = None,
) -> Graph:
    """Check raw arrays and bring them into the canonical form of :class:`Graph`.

    Edges are made symmetric, duplicates are merged and self loops dropped, as torch_geometric's loaders do.

    Args:
        name: the dataset's name.
        features: ``[n, d]``, dense or scipy sparse, any numeric type; NaN = missing by nature.
        edges: ``[2, E]`` integers, in any direction, with or without duplicates.
        labels: ``[n]`` integers, -1 = unlabelled; the number of classes is the largest label plus one.
        split: node indices; every one labelled, none in two parts.
        known: ``[n, d]`` bool, False = missing by nature, whatever ``features`` holds.

    Raises:
        RequestError: the arrays contradict each other.
    """
    features, known = _canonical_features(name, features, known)
    num_nodes = features.shape[0]
    labels = check_labels(name, labels)
    if len(labels) != num_nodes:
        raise RequestError(f"data={name}: {num_nodes} rows of features do not match {len(labels)} labels.")
    return Graph(
        name=name,
        features=features,
        adjacency=_simple_adjacency(name, edges, num_nodes),
        labels=labels,
        num_classes=int(labels.max()) + 1,
        split=_checked_split(name, split, labels),
        known=known,
    )


def check_labels(name: str, labels: np.ndarray) -> np.ndarray:
    """``labels`` as int64 ``[n]``, after checking that they are classes 0..C-1 or -1."""
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        found = f"{labels.dtype} of shape {list(labels.shape)}"
        raise RequestError(
            f"data={name}: labels must be one integer per node (-1 = unlabelled), found {found}."
        )
    labels = labels.astype(np.int64)
    # More classes than nodes suggest identifiers instead of labels.
    if labels.size == 0 or labels.min() < -1 or not 0 <= labels.max() < len(labels):
        raise RequestError(f"data={name}: labels must be classes counted from 0, or -1 for unlabelled nodes.")
    return labels


def _canonical_features(
    name: str, features: Any, known: np.ndarray | None
) -> tuple[sparse.csr_array, np.ndarray | None]:
    """The features with missing entries removed, and which entries are known (None: all)."""
    with np.errstate(over="ignore"):  # too large for float32 becomes inf and is refused below
        matrix = sparse.csr_array(features, dtype=np.float32, copy=True)
    if 0 in matrix.shape:
        raise RequestError(f"data={name}: the feature matrix is empty (shape {list(matrix.shape)}).")
    matrix.sum_duplicates()
    known = _known_entries(name, matrix, known)
    if known is not None:
        matrix.data[~known[matrix.tocoo().coords]] = 0
    if not np.isfinite(matrix.data).all():
        raise RequestError(f"data={name}: features must be finite numbers, or NaN where missing.")
    matrix.eliminate_zeros()
    return matrix, known


def _known_entries(name: str, matrix: sparse.csr_array, known: np.ndarray | None) -> np.ndarray | None:
    """``[n, d]``, False where the mask or NaN marks an entry as missing; None if all are known."""
    if known is not None and known.shape != matrix.shape:
        raise RequestError(
            f"data={name}: features have shape {list(matrix.shape)}, but observed has {list(known.shape)}."
        )
    empty = np.isnan(matrix.data)
    if empty.any():
        row, column = matrix.tocoo().coords
        known = np.ones(matrix.shape, dtype=bool) if known is None else known.copy()
        known[row[empty], column[empty]] = False
    if known is None or known.all():
        return None
    if not known.any():
        raise RequestError(f"data={name}: all attributes are missing.")
    return known


def _simple_adjacency(name: str, edges: np.ndarray, num_nodes: int) -> sparse.csr_array:
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        found = f"{edges.dtype} of shape {list(edges.shape)}"
        raise RequestError(f"data={name}: edges must be two rows of integer node indices, found {found}.")
    if edges.size and not 0 <= edges.min() <= edges.max() < num_nodes:
        bounds = f"{edges.min()} to {edges.max()}"
        raise RequestError(f"data={name}: edges name nodes {bounds}, but the nodes are 0 to {num_nodes - 1}.")
    source, target = edges[:, edges[0] != edges[1]].astype(np.int64)
    both_ways = np.concatenate([source, target]), np.concatenate([target, source])
    ones = np.ones(2 * len(source), dtype=np.float32)
    adjacency = sparse.coo_array((ones, both_ways), shape=(num_nodes, num_nodes)).tocsr()  # sums duplicates
    adjacency.data[:] = 1
    return adjacency


def _checked_split(name: str, split: Split, labels: np.ndarray) -> Split:
    parts = {part: np.asarray(getattr(split, part)) for part in ("train", "val", "test")}
    for part, index in parts.items():
        if index.ndim != 1 or index.dtype.kind not in "iu" or index.size == 0:
            raise RequestError(
                f"data={name}: the {part} nodes must be a non-empty list of integer node indices."
            )
        if not 0 <= index.min() <= index.max() < len(labels):
            raise RequestError(f"data={name}: the {part} nodes must be indices from 0 to {len(labels) - 1}.")
        if (labels[index] < 0).any():
            raise RequestError(f"data={name}: some {part} nodes have no label.")
    everything = np.concatenate(list(parts.values()))
    if len(np.unique(everything)) != len(everything):
        raise RequestError(
            f"data={name}: a node is in the split twice; train, val and test must be disjoint."
        )
    return Split(*(np.sort(index).astype(np.int64) for index in parts.values()), drawn=split.drawn)
