"""PaGCN, the journal successor of PaGNN by the same authors (IEEE TAI 5(9):4315-4321, 2024)."""

from __future__ import annotations

from pagnn_bench.methods.base import Context, Signal, TwoLayerMethod
from pagnn_bench.missing import IncompleteGraph
from pagnn_bench.nn.propagate import aggregation, partial_aggregate, partial_correction, symmetric_operator


class PaGCN(TwoLayerMethod):
    """The successor's aggregation in the two-layer network of the other methods.

    Layer 1 sums with the weights of GCN and divides by the *number* of observed neighbours::

        G = D̃^{1/2} Ã D̃^{-1/2}(M ⊙ H) ⊘ ÃM

    and layer 2 is an ordinary GCN layer, P = Â. With everything observed G = ÂH, as for PaGNN-N; otherwise the two
    differ, because the denominator here ignores degrees.

    The released code has another network, with a partial layer d → d before the two. It was meant for Cora and
    Citeseer, but the test for their names is always true, so every dataset gets three layers. It also applies M to
    the hidden layer, whose units are not the attributes that M describes. We compare aggregations, so we keep the
    network of PaGNN.
    """

    def signal(self, graph: IncompleteGraph, context: Context) -> Signal:
        first = partial_aggregate(graph.adjacency, graph.features, graph.observed, "pagcn")
        before = None
        if self.input_dropout == "pre":
            weights, _ = aggregation(graph.adjacency, "pagcn")
            correction = partial_correction(graph.adjacency, graph.observed, "pagcn")
            before = (weights, graph.features, correction)
        facts = {"empty_share": first.empty_share}
        return Signal(first.values, symmetric_operator(graph.adjacency), before, facts)
