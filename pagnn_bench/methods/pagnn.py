"""PaGNN: partial graph neural networks (Jiang and Zhang, arXiv 2003.10130)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pagnn_bench.methods.base import Context, Signal, TwoLayerMethod
from pagnn_bench.methods.portable import Portable, convolutions, dense, edge_index
from pagnn_bench.methods.values import choice, flag
from pagnn_bench.missing import IncompleteGraph
from pagnn_bench.nn.propagate import (
    aggregation,
    mean_operator,
    partial_aggregate,
    partial_correction,
    partial_operator,
    symmetric_operator,
    with_self_loops,
)

NORMS = ("m", "n")  # mean, symmetric normalisation


class PaGNN(TwoLayerMethod):
    """Two layers of partial aggregation, without parameters or estimates for what is missing.

    Layer 1 averages only the observed neighbours, attribute by attribute (eq. 12 and 13 of the paper)::

        PaGNN-M: G = Ã(M ⊙ H) ⊘ ÃM          PaGNN-N: G = ÂE ⊙ Â(M ⊙ H) ⊘ ÂM

    The hidden layer has no missing entries, so layer 2 is the same formula with a mask of ones: Ā for M, Â for N.

    Args:
        norm: ``m`` or ``n``, the paper's two aggregations.
        mask_update: count a node as observed in layer 2 only if layer 1 saw anything (as partial convolutions do).
        **common: see :class:`TwoLayerMethod`.
    """

    def __init__(self, norm: str, mask_update: bool, **common: Any) -> None:
        super().__init__(**common)
        self.norm, self.mask_update = choice("norm", norm, NORMS), flag("mask_update", mask_update)

    def signal(self, graph: IncompleteGraph, context: Context) -> Signal:
        first = partial_aggregate(graph.adjacency, graph.features, graph.observed, self.norm)
        if self.mask_update:
            operator = partial_operator(graph.adjacency, first.reached, self.norm)
        else:
            operator = (mean_operator if self.norm == "m" else symmetric_operator)(graph.adjacency)
        factors = None
        if self.input_dropout == "pre":
            weights, _ = aggregation(graph.adjacency, self.norm)
            correction = partial_correction(graph.adjacency, graph.observed, self.norm)
            factors = (weights, graph.features, correction)
        # A node is blind if neither it nor any neighbour received anything: its prediction is only the bias.
        blind = with_self_loops(graph.adjacency) @ first.reached.astype(np.float64) == 0
        facts = {"empty_share": first.empty_share, "blind_share": float(blind.mean())}
        return Signal(first.values, operator, factors, facts)

    def portable(self, graph: IncompleteGraph, signal: Signal) -> Portable | None:
        if self.mask_update:
            return None  # PaGNN as a module has no mask in layer 2

        def inputs() -> dict[str, np.ndarray]:
            known = np.ascontiguousarray(graph.observed.dense())
            edges = edge_index(graph.adjacency)
            return {"x": dense(graph.features), "edge_index": edges, "observed": known}

        arguments = self.layer_arguments(graph.features.shape[1], graph.num_classes)
        return Portable("pagnn_bench.nn.PaGNN", {**arguments, "norm": self.norm}, convolutions, inputs)
