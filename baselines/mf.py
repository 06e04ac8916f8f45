"""Mean filling (MF), the simplest imputation of the paper's comparison."""

from __future__ import annotations

import numpy as np

from pagnn_bench.methods.base import Context
from pagnn_bench.methods.imputation import ImputationMethod
from pagnn_bench.missing import IncompleteGraph


class MeanFilling(ImputationMethod):
    """X̂_if = X_if where observed, else μ_f, the mean of column f over its observed entries (0 if it has none).

    With whole nodes missing, every such node receives the same vector μ.
    """

    def impute(self, graph: IncompleteGraph, context: Context) -> np.ndarray:
        observed = graph.observed.dense()
        count = observed.sum(axis=0)
        total = graph.features.sum(axis=0, dtype=np.float64)
        mean = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
        return np.where(observed, graph.features.toarray(), mean.astype(np.float32))
