"""D2PT: long-range propagation and a graph of similar nodes (Liu et al., KDD 2023)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
import torch

from pagnn_bench.baselines.d2pt_network import Alignment, D2PTNetwork
from pagnn_bench.baselines.fp import BLOCK_ENTRIES
from pagnn_bench.methods.base import Context, Method, Prepared
from pagnn_bench.methods.values import fraction, not_negative, positive, whole
from pagnn_bench.missing import IncompleteGraph
from pagnn_bench.nn.inputs import make_input
from pagnn_bench.nn.network import PARTS
from pagnn_bench.nn.propagate import symmetric_operator
from pagnn_bench.nn.sparse import csr_tensor

SIMILARITIES = 1 << 22  # held in memory at a time


class D2PT(Method):
    """A network without edges on attributes that were spread over two graphs.

    X⁽ᵀ⁾ results from X ← (1 - α) ÂX + α M ⊙ X, with 0 for missing entries, over the given graph, and again over the
    graph that links every node to its k nearest by the cosine of X⁽ᵀ⁾. Both go through the same two layers; the loss
    is the cross entropy of the first, plus λ_a times that of the second, plus λ_p times the distance of their class
    prototypes (:class:`~pagnn_bench.baselines.d2pt_network.D2PTNetwork`). Predictions are those of the first. The
    method ignores the mask: an unknown 0 is treated like an observed one.

    Only nodes of positive similarity are linked here. A node whose X⁽ᵀ⁾ is 0 has none; the released code links it to
    arbitrary nodes. That code intends to divide attributes by their row sums, but does not.

    Args:
        hidden: width of the hidden layer.
        dropout: rate on the input and the hidden layer.
        num_iterations: T.
        alpha: α.
        neighbours: k.
        augmented: λ_a.
        alignment: λ_p.
        temperature: of the alignment.
    """

    def __init__(
        self,
        hidden: int,
        dropout: float,
        num_iterations: int,
        alpha: float,
        neighbours: int,
        augmented: float,
        alignment: float,
        temperature: float,
    ) -> None:
        self.hidden, self.dropout = whole("hidden", hidden), fraction("dropout", dropout)
        self.num_iterations, self.alpha = whole("num_iterations", num_iterations), fraction("alpha", alpha)
        self.neighbours = whole("neighbours", neighbours)
        self.augmented = not_negative("augmented", augmented)
        self.alignment = not_negative("alignment", alignment)
        self.temperature = positive("temperature", temperature)

    @property
    def stackable_dropout(self) -> bool:
        return True

    def prepare(self, graph: IncompleteGraph, context: Context) -> Prepared:
        device, train = context.device, graph.split.train
        spread = self._spread(graph.adjacency, graph.features, device)
        inputs = {part: make_input(spread[getattr(graph.split, part)], device) for part in PARTS}
        alignment = None
        if self.augmented > 0 or self.alignment > 0:
            similar = nearest_nodes(spread, self.neighbours, device)
            alignment = Alignment(
                make_input(spread, device),
                make_input(self._spread(similar, graph.features, device), device),
                torch.from_numpy(train).to(device),
                torch.from_numpy(graph.labels[train]).to(device),
                self.augmented,
                self.alignment,
                self.temperature,
            )
        sizes = (spread.shape[1], self.hidden, graph.num_classes)

        def network(seeds: Sequence[int], gain: float) -> D2PTNetwork:
            return D2PTNetwork(inputs, alignment, sizes, seeds, self.dropout, gain, device)

        return Prepared(network)

    def _spread(self, adjacency: sp.csr_array, features: sp.csr_array, device: torch.device) -> np.ndarray:
        return spread_far(adjacency, features, self.num_iterations, self.alpha, device)


def spread_far(
    adjacency: sp.csr_array, features: sp.csr_array, num_iterations: int, alpha: float, device: torch.device
) -> np.ndarray:
    """X ← (1 - α) ÂX + α X⁽⁰⁾, ``num_iterations`` times, float32 [n, d]: personalised PageRank cut short."""
    matrix, result = csr_tensor(symmetric_operator(adjacency), device), features.toarray()
    width = max(1, BLOCK_ENTRIES // len(result))
    for start in range(0, result.shape[1], width):
        first = values = torch.from_numpy(result[:, start : start + width].copy()).to(device)
        for _ in range(num_iterations):
            values = (1 - alpha) * (matrix @ values) + alpha * first
        result[:, start : start + width] = values.cpu().numpy()
    return result


def nearest_nodes(values: np.ndarray, count: int, device: torch.device) -> sp.csr_array:
    """The graph that links every row of ``values`` [n, d] to the ``count`` others with the highest positive cosine.

    Returns:
        CSR float32 [n, n], binary, symmetric (linked if either is among the other's nearest), zero diagonal.
    """
    rows = torch.nn.functional.normalize(torch.from_numpy(values).to(device))
    count, ends = min(count, len(rows) - 1), []
    for block in torch.arange(len(rows), device=device).split(max(1, SIMILARITIES // len(rows))):
        similar = rows[block] @ rows.T
        similar[block - block[0], block] = -torch.inf
        highest = similar.topk(count, dim=1)
        near, place = torch.nonzero(highest.values > 0, as_tuple=True)
        ends.append(torch.stack((block[near], highest.indices[near, place])).cpu().numpy())
    links = np.hstack(ends)
    graph = sp.csr_array((np.ones(links.shape[1], dtype=np.float32), tuple(links)), shape=(len(values),) * 2)
    return sp.csr_array(graph.maximum(graph.T))
