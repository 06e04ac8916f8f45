"""A network without the graph: what the observed attributes alone achieve."""

from __future__ import annotations

from collections.abc import Mapping

import scipy.sparse as sp
from torch import Tensor

from pagnn_bench.methods.base import Context, Signal, TwoLayerMethod
from pagnn_bench.methods.portable import Portable, dense, layer_state
from pagnn_bench.missing import IncompleteGraph


class MLP(TwoLayerMethod):
    """The same two layers with the identity instead of every propagation, on zero-filled attributes."""

    def signal(self, graph: IncompleteGraph, context: Context) -> Signal:
        identity = sp.eye_array(graph.adjacency.shape[0], format="csr")
        # Nothing is aggregated, so dropout before and after aggregation are the same thing.
        return Signal(graph.features, identity, (identity, graph.features, identity.diagonal()[:, None]))

    def portable(self, graph: IncompleteGraph, signal: Signal) -> Portable:
        def state(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return layer_state(weights, "lins.{}.weight", "lins.{}.bias")

        sizes = self.layer_arguments(graph.features.shape[1], graph.num_classes)
        arguments = {**sizes, "norm": None}
        return Portable("torch_geometric.nn.MLP", arguments, state, lambda: {"x": dense(graph.features)})
