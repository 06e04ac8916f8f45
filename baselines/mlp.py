"""A network without the graph: what the observed attributes alone can tell."""

from __future__ import annotations

import scipy.sparse as sp

from pagnn_bench.methods.base import Context, Signal, TwoLayerMethod
from pagnn_bench.missing import IncompleteGraph


class MLP(TwoLayerMethod):
    """The same two layers with the identity in place of every propagation, on zero-filled attributes."""

    def signal(self, graph: IncompleteGraph, context: Context) -> Signal:
        identity = sp.eye_array(graph.adjacency.shape[0], format="csr")
        # Nothing is aggregated, so dropout before and after aggregation are the same thing.
        return Signal(graph.features, identity, (identity, graph.features, identity.diagonal()[:, None]))
