"""Methods that fill in the missing entries first and then train a standard GCN."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import scipy.sparse as sp

from pagnn_bench.methods.base import Signal, TwoLayerMethod
from pagnn_bench.missing import IncompleteGraph
from pagnn_bench.nn.propagate import symmetric_operator


class ImputationMethod(TwoLayerMethod):
    """X̂ = imputed features, then the two-layer GCN: G = Â X̂ and P = Â.

    A subclass writes :meth:`impute`; observed entries must come back unchanged.
    """

    @abstractmethod
    def impute(self, graph: IncompleteGraph, seed: int) -> sp.csr_array | np.ndarray:
        """The filled features X̂ [n, d], CSR where most entries are 0, dense otherwise."""

    def signal(self, graph: IncompleteGraph, seed: int) -> Signal:
        operator = symmetric_operator(graph.adjacency)
        filled = self.impute(graph, seed)
        aggregated = operator @ filled.astype(np.float64)
        if sp.issparse(aggregated):
            aggregated = sp.csr_array(aggregated)
            aggregated.sort_indices()
        before = (operator, filled, np.ones((filled.shape[0], 1)))
        return Signal(aggregated.astype(np.float32), operator, before)
