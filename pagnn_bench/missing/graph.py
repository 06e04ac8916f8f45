"""The incomplete graph that methods see: the hidden entries are not in it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from pagnn_bench.data.graph import Graph, Split
from pagnn_bench.missing.mask import Observed


@dataclass(frozen=True)
class IncompleteGraph:
    """G(A, H, M) of the paper: all that a method may see.

    Attributes:
        adjacency: CSR [n, n], binary, symmetric, zero diagonal (A).
        features: CSR float32 [n, d]; hidden entries are absent (M ⊙ H). Hidden values are *not in here*, so no
            method can leak them.
        observed: the mask M.
        labels: int64 [n], -1 where unlabelled.
        num_classes: C.
        split: train, validation and test nodes.
        complete: the complete features, only for the controls that are allowed to look (``oracle`` methods).
    """

    adjacency: sp.csr_array
    features: sp.csr_array
    observed: Observed
    labels: np.ndarray
    num_classes: int
    split: Split
    complete: sp.csr_array | None = None

    def for_method(self) -> IncompleteGraph:
        """A copy for a method, with the labels of training nodes only (-1 elsewhere).

        All methods of a process share the graph; one that changes an array in place must not affect the others.
        """
        own = copy.deepcopy(self)
        labels = np.full_like(self.labels, -1)
        labels[self.split.train] = self.labels[self.split.train]
        return replace(own, labels=labels)


FEATURE_NORMS = ("none", "row")


def hide(
    graph: Graph, observed: Observed, feature_norm: str = "none", oracle: bool = False
) -> IncompleteGraph:
    """Take the hidden entries out of a graph.

    ``feature_norm="row"`` divides each row by the sum of its *observed* absolute values: dividing by the complete sum
    would reveal how many words are hidden.
    """
    features = observed.apply(graph.features)
    complete = graph.features if oracle else None
    if feature_norm == "row":
        features = _row_normalise(features)
        complete = None if complete is None else _row_normalise(complete)
    return IncompleteGraph(
        adjacency=graph.adjacency,
        features=features,
        observed=observed,
        labels=graph.labels,
        num_classes=graph.num_classes,
        split=graph.split,
        complete=complete,
    )


def _row_normalise(features: sp.csr_array) -> sp.csr_array:
    total = np.asarray(abs(features).sum(axis=1)).ravel()
    scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    scaled = features.copy()
    scaled.data = (scaled.data * np.repeat(scale, np.diff(scaled.indptr))).astype(np.float32)
    return scaled
