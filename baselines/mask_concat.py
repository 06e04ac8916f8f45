"""Zero filling that tells the network what is missing, after GNNmim (arXiv 2601.04855)."""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.sparse as sp

from pagnn_bench.methods.base import Context, Signal
from pagnn_bench.methods.imputation import ImputationMethod
from pagnn_bench.missing import IncompleteGraph


class MaskConcat(ImputationMethod):
    """X̂ = [M ⊙ X ‖ 1 − M] [n, 2d], then the two-layer GCN: an unknown 0 and an observed 0 are told apart."""

    def impute(self, graph: IncompleteGraph, context: Context) -> sp.csr_array | np.ndarray:
        missing = (~graph.observed.dense()).astype(np.float32)
        return np.hstack((graph.features.toarray(), missing))

    def signal(self, graph: IncompleteGraph, context: Context) -> Signal:
        # Nothing is estimated, so there is nothing to measure an imputation error of.
        return dataclasses.replace(super().signal(graph, context), filled=None)
