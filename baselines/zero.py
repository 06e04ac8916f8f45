"""Zero filling: the control that every imputation should beat."""

from __future__ import annotations

import scipy.sparse as sp

from pagnn_bench.methods.base import Context
from pagnn_bench.methods.imputation import ImputationMethod
from pagnn_bench.missing import IncompleteGraph


class Zero(ImputationMethod):
    """X̂ = M ⊙ X: an unknown word counts as absent."""

    def impute(self, graph: IncompleteGraph, context: Context) -> sp.csr_array:
        return graph.features
