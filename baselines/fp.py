"""Feature Propagation (FP): Rossi et al., Learning on Graphs 2022, arXiv 2111.12128."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from pagnn_bench.config.identity import seed_for
from pagnn_bench.methods.base import Context, Signal
from pagnn_bench.methods.imputation import ImputationMethod
from pagnn_bench.methods.values import flag, not_negative, whole
from pagnn_bench.missing import IncompleteGraph, Observed
from pagnn_bench.nn.propagate import symmetric_operator
from pagnn_bench.nn.sparse import csr_tensor

# Columns do not interact during diffusion, so all steps of a few columns run before those of the next: a block of this
# many entries stays in the processor's cache (two to five times as fast as whole matrices on the paper's graphs).
BLOCK_ENTRIES = 1 << 18

CANDIDATES = 20  # training nodes considered for links with each training node, as in DART's code


class FeaturePropagation(ImputationMethod):
    """Diffuses the observed features over the graph and holds the observed entries fixed.

    X⁽⁰⁾ = M ⊙ X, then ``num_iterations`` times X ← ÂX with the observed entries reset. The limit minimises the
    Dirichlet energy: on the missing entries X = ÂX, for each attribute separately. What no observation reaches is 0.

    Args:
        num_iterations: steps of the diffusion.
        link: also diffuse over edges between training nodes of the same class (:func:`co_label_links`), the idea of
            DART (arXiv 2512.06356). The network that follows keeps the edges of the graph.
        random_columns: append this many columns, as a share of d, in which one random node has a value from U(0, 1)
            that is diffused like an observation. They reveal where a node is but nothing about its attributes: the
            control for FISF, which injects such values.
        **common: see :class:`~pagnn_bench.methods.base.TwoLayerMethod`.
    """

    def __init__(
        self, num_iterations: int, link: bool = False, random_columns: float = 0, **common: Any
    ) -> None:
        super().__init__(**common)
        self.num_iterations = whole("num_iterations", num_iterations)
        self.link, self.random_columns = flag("link", link), not_negative("random_columns", random_columns)

    def impute(self, graph: IncompleteGraph, context: Context) -> np.ndarray:
        adjacency = co_label_links(graph, context.seed) if self.link else graph.adjacency
        operator = symmetric_operator(adjacency)
        return diffuse(operator, graph.features, graph.observed, self.num_iterations, context.device)

    def signal(self, graph: IncompleteGraph, context: Context) -> Signal:
        signal = super().signal(graph, context)
        count = round(self.random_columns * graph.features.shape[1])
        if count == 0:
            return signal
        columns = self._diffused_noise(graph, count, context)
        assert isinstance(signal.filled, np.ndarray)
        wider = self.propagated(graph, np.hstack((signal.filled, columns)))
        return dataclasses.replace(wider, filled=signal.filled)

    def _diffused_noise(self, graph: IncompleteGraph, count: int, context: Context) -> np.ndarray:
        rng = np.random.default_rng(seed_for("random columns", seed=context.seed))
        nodes, values = rng.integers(len(graph.labels), size=count), rng.random(count, dtype=np.float32)
        start = sp.csr_array((values, (nodes, np.arange(count))), shape=(len(graph.labels), count))
        fixed = Observed(start.shape, cells=start.toarray() != 0)
        return diffuse(symmetric_operator(graph.adjacency), start, fixed, self.num_iterations, context.device)


def co_label_links(graph: IncompleteGraph, seed: int) -> sp.csr_array:
    """A with edges between training nodes of the same class, CSR [n, n].

    Each training node is linked to those of its class among ``CANDIDATES`` randomly drawn training nodes. (In DART's
    code such an edge has only one direction.)
    """
    rng, train = np.random.default_rng(seed_for("links", seed=seed)), graph.split.train
    draws = min(CANDIDATES, len(train))
    pairs = [(node, other) for node in train for other in rng.choice(train, draws, replace=False)]
    ends = np.array([(i, j) for i, j in pairs if i != j and graph.labels[i] == graph.labels[j]], dtype=int)
    links = sp.csr_array((np.ones(len(ends)), tuple(ends.reshape(-1, 2).T)), shape=graph.adjacency.shape)
    return sp.csr_array(((graph.adjacency + links + links.T) > 0).astype(np.float32))


def diffuse(
    operator: sp.csr_array,
    features: sp.csr_array,
    observed: Observed,
    num_iterations: int,
    device: torch.device,
    confidence: np.ndarray | None = None,
) -> np.ndarray:
    """Repeat X ← QX, observed entries reset; with a confidence C ≥ 0, X ← Q(C ⊙ X) ⊘ QC (0/0 = 0).

    Args:
        operator: Q, CSR [n, n].
        features: M ⊙ X, CSR [n, d].
        observed: M.
        num_iterations: number of repetitions.
        device: where to compute.
        confidence: C, [n, 1] or [n, d].

    Returns:
        X, float32 [n, d]; observed entries are unchanged.
    """
    matrix, result = csr_tensor(operator, device), features.toarray()
    for start, stop, block in observed.column_blocks(BLOCK_ENTRIES):
        fixed = torch.tensor(result[:, start:stop], device=device)
        factor = torch.tensor(~block, dtype=torch.float32, device=device)  # 0 where observed: the reset
        weight = None
        if confidence is not None:
            columns = slice(start, stop) if confidence.shape[1] > 1 else slice(None)
            weight = torch.tensor(confidence[:, columns], dtype=torch.float32, device=device)
            total = matrix @ weight
            factor = torch.where(total > 0, factor / total, 0)
        values = fixed
        for _ in range(num_iterations):
            spread = matrix @ (values if weight is None else values * weight)
            values = torch.addcmul(fixed, factor, spread)
        result[:, start:stop] = values.cpu().numpy()
    return result
