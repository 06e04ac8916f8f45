"""Label propagation: what edges and training labels alone achieve, without any attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from pagnn_bench.methods.base import Context, Method, Prepared
from pagnn_bench.methods.values import flag, fraction, whole
from pagnn_bench.missing import IncompleteGraph
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.network import PARTS, StackedNetwork
from pagnn_bench.nn.propagate import symmetric_operator


class LabelPropagation(Method):
    """The structure-only floor: training labels spread along the edges; attributes are ignored, nothing is trained.

    See :func:`propagate_labels`. The scores P are the logits, so a node that no label reaches gets class 0.

    Args:
        alpha: share of a node's score that comes from its neighbours.
        num_iterations: steps.
        self_loops: whether a node is its own neighbour.
    """

    def __init__(self, alpha: float, num_iterations: int, self_loops: bool) -> None:
        self.alpha, self.num_iterations = fraction("alpha", alpha), whole("num_iterations", num_iterations)
        self.self_loops = flag("self_loops", self_loops)

    def prepare(self, graph: IncompleteGraph, context: Context) -> Prepared:
        operator = (symmetric_operator if self.self_loops else plain_operator)(graph.adjacency)
        scores = propagate_labels(operator, graph, self.alpha, self.num_iterations)
        parts = {
            part: torch.from_numpy(scores[getattr(graph.split, part)]).to(context.device) for part in PARTS
        }

        def network(seeds: Sequence[int], gain: float) -> FixedNetwork:
            return FixedNetwork(parts, len(seeds), context.device)

        return Prepared(network)


class FixedNetwork(StackedNetwork):
    """S times the same logits: a network with nothing to train, which the training loop evaluates once.

    Args:
        logits: [m, C] of every part of the split.
        members: S.
    """

    def __init__(self, logits: Mapping[str, Tensor], members: int, device: torch.device) -> None:
        super().__init__()
        self.logits = dict(logits)
        # The trainer selects members along the first dimension of parameters; this one has no entries.
        self.members = nn.Parameter(torch.empty(members, 0, device=device))

    def forward(self, part: str, streams: DropoutStreams | None) -> Tensor:
        return self.logits[part] + self.members.sum(dim=1)[:, None, None]


def plain_operator(adjacency: sp.csr_array) -> sp.csr_array:
    """S = D^{-1/2} A D^{-1/2} without self loops, CSR float64 [n, n]; the row of a node without neighbours is 0."""
    degree = adjacency.sum(axis=1).astype(np.float64)
    scale = sp.diags_array(np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0))
    return sp.csr_array(scale @ adjacency @ scale)


def propagate_labels(
    operator: sp.csr_array, graph: IncompleteGraph, alpha: float, num_iterations: int
) -> np.ndarray:
    """P ← clip(α S P + (1 - α) Y, 0, 1), ``num_iterations`` times from P = Y; Y is one-hot on training nodes, else 0.

    As in torch_geometric (Zhou et al., NeurIPS 2003), with the given operator S.

    Returns:
        P, float32 [n, C].
    """
    known = training_labels(graph)
    scores = known
    for _ in range(num_iterations):
        scores = (alpha * (operator @ scores) + (1 - alpha) * known).clip(0, 1)
    return scores.astype(np.float32)


def training_labels(graph: IncompleteGraph) -> np.ndarray:
    """Y [n, C]: one-hot on training nodes, 0 elsewhere."""
    train = graph.split.train
    known = np.zeros((len(graph.labels), graph.num_classes))
    known[train, graph.labels[train]] = 1
    return known
