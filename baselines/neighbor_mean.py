"""Neighbour mean: fills in what PaGNN would average, a control between mean filling and partial aggregation."""

from __future__ import annotations

import scipy.sparse as sp

from pagnn_bench.methods.base import Context
from pagnn_bench.methods.imputation import ImputationMethod
from pagnn_bench.missing import IncompleteGraph, Observed
from pagnn_bench.nn.propagate import partial_aggregate


class NeighborMean(ImputationMethod):
    """X̂_if = X_if where observed, else Σ_j Ã_ij m_jf x_jf / Σ_j Ã_ij m_jf, the mean over the observed neighbours.

    This is the ratio of PaGNN-M, used only for missing entries; an entry without an observed neighbour is 0.
    """

    def impute(self, graph: IncompleteGraph, context: Context) -> sp.csr_array:
        rows, cells = graph.observed.rows, graph.observed.cells
        hidden = Observed(
            graph.observed.shape, None if rows is None else ~rows, None if cells is None else ~cells
        )
        means = partial_aggregate(graph.adjacency, graph.features, graph.observed, "m").values
        return sp.csr_array(graph.features + hidden.apply(means))
