"""Standardised columns: ``data.standardise``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy import sparse

from pagnn_bench.data.graph import Graph
from pagnn_bench.missing.mask import Observed


@dataclass(frozen=True)
class Scale:
    """X'_if = (X_if - μ_f) s_f, with s_f = 1 / σ_f.

    Attributes:
        mean, factor: μ and s, float64 [d]; s_f = 0 if the scale of a column is unknown.
    """

    mean: np.ndarray
    factor: np.ndarray

    @classmethod
    def of(cls, graph: Graph, observed: Observed, by_all: bool = False) -> Self:
        """Mean and standard deviation over the observed entries of training nodes, or of all nodes.

        Hidden values do not enter μ and σ, so these depend on the mask. Columns in which these nodes show only 0 and 1
        (words, one-hot) stay as they are; constant ones are only centred; a column of which they show nothing becomes
        0, since its scale is unknown.

        Args:
            graph: its features are X [n, d].
            observed: the mask, without the entries that are missing by nature.
            by_all: use all nodes, since methods see the observed entries of all of them; a few training nodes with few
                observed entries each say little about the scale of a column.
        """
        nodes = np.arange(graph.num_nodes) if by_all else graph.split.train
        seen = observed.dense()[nodes]  # [m, d]
        values = observed.apply(graph.features)[nodes].toarray().astype(np.float64)  # 0 where hidden
        count = seen.sum(axis=0)
        mean = values.sum(axis=0) / count.clip(1)
        spread = np.sqrt((seen * (values - mean) ** 2).sum(axis=0) / count.clip(1))
        constant = spread <= 1e-7 * np.abs(mean)  # up to the rounding of float32
        factor = np.where(count == 0, 0.0, 1 / np.where(constant, 1.0, spread))
        binary = (count > 0) & (np.isin(values, (0, 1)) | ~seen).all(axis=0)
        mean[binary], factor[binary] = 0, 1
        return cls(mean, factor)

    def undo(self, scaled: np.ndarray) -> np.ndarray:
        """From X' back to X, float64 [n, d]; NaN in columns without a scale."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.factor > 0, scaled / self.factor + self.mean, np.nan)


def standardise(graph: Graph, observed: Observed, by_all: bool = False) -> Graph:
    """The graph with columns of mean 0 and deviation 1 (:class:`Scale`); what is missing by nature stays absent."""
    scale = Scale.of(graph, observed, by_all)
    scaled = (graph.features.toarray() - scale.mean) * scale.factor
    if graph.known is not None:
        scaled[~graph.known] = 0
    return replace(graph, features=sparse.csr_array(scaled.astype(np.float32)))
