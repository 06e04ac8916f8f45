"""The ceiling: what the same network achieves when nothing is missing."""

from __future__ import annotations

import scipy.sparse as sp

from pagnn_bench.methods.base import Context
from pagnn_bench.methods.imputation import ImputationMethod
from pagnn_bench.missing import IncompleteGraph


class Full(ImputationMethod):
    """X̂ = X: the two-layer GCN on the complete features. The only method that may look at them."""

    oracle = True

    def impute(self, graph: IncompleteGraph, context: Context) -> sp.csr_array:
        assert graph.complete is not None  # `hide` includes them for an oracle
        return graph.complete
