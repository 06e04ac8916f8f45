"""PCFI: pseudo-confidence in feature imputation (Um et al., ICLR 2023, arXiv 2305.16618)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from pagnn_bench.baselines.fp import BLOCK_ENTRIES, diffuse
from pagnn_bench.config.errors import RequestError
from pagnn_bench.methods.base import Context
from pagnn_bench.methods.imputation import ImputationMethod
from pagnn_bench.methods.values import not_negative, whole
from pagnn_bench.missing import IncompleteGraph, Observed
from pagnn_bench.nn.propagate import with_self_loops

# A column whose standard deviation is below this share of its mean is constant up to the rounding of float32.
CONSTANT = 1e-6


class PCFI(ImputationMethod):
    """Diffusion in which nearer observations count more, then a correction from correlated attributes.

    S_if is the number of hops from node i to the nearest node with attribute f observed, c_if = α^{S_if} the
    confidence in an imputed value. The paper diffuses every attribute with a separate matrix, the row-normalised
    w_ij = α^{S_jf - S_if + 1} over the edges and self loops. The factor α^{1 - S_if} is constant within a row and
    cancels, so for all attributes at once this is, with observed entries reset after each of the K steps::

        X ← Ã(c ⊙ X) ⊘ Ãc

    With α → 0 and K = 1 this is the ratio of PaGNN-M. The second step corrects entries of low confidence by the other
    attributes of the node, where R is the correlation matrix of X [d, d] with a zero diagonal::

        X ← X + β (1 - c) ⊙ [(c ⊙ (X - column mean)) R]

    S = ∞ and c = 0 where no observation can be reached; the released code has S = 0 there, the confidence of an
    observation.

    Args:
        num_iterations: K.
        alpha: α, in (0, 1).
        beta: β, not negative; 0 leaves the second step out.
        **common: see :class:`~pagnn_bench.methods.base.TwoLayerMethod`.
    """

    def __init__(self, num_iterations: int, alpha: float, beta: float, **common: Any) -> None:
        super().__init__(**common)
        if not (isinstance(alpha, (int, float)) and 0 < alpha < 1):
            raise RequestError(f"method.alpha={alpha}: give a number between 0 and 1, both excluded.")
        self.num_iterations, self.alpha = whole("num_iterations", num_iterations), alpha
        self.beta = not_negative("beta", beta)

    def impute(self, graph: IncompleteGraph, context: Context) -> np.ndarray:
        confidence = self.alpha ** hop_distance(graph.adjacency, graph.observed)
        operator, device = with_self_loops(graph.adjacency), context.device
        filled = diffuse(operator, graph.features, graph.observed, self.num_iterations, device, confidence)
        if self.beta == 0:
            return filled
        x, c = torch.from_numpy(filled).to(device), torch.from_numpy(confidence).to(device)
        centred = x - _column_mean(x)
        x += self.beta * (1 - c) * ((c * centred) @ correlation(x))
        return x.cpu().numpy()


def hop_distance(adjacency: sp.csr_array, observed: Observed) -> np.ndarray:
    """S, float32 [n, d], or [n, 1] for whole rows: hops to the nearest observation, ∞ where there is none."""
    if observed.rows is not None:
        return _hops(adjacency, observed.rows[:, None])
    distance = np.empty(observed.shape, dtype=np.float32)
    for start, stop, block in observed.column_blocks(BLOCK_ENTRIES):
        distance[:, start:stop] = _hops(adjacency, block)
    return distance


def _hops(adjacency: sp.csr_array, sources: np.ndarray) -> np.ndarray:
    """Breadth first from the True entries of every column of ``sources`` [n, k], all columns at once."""
    distance = np.where(sources, np.float32(0), np.float32(np.inf))
    frontier, hops = sources, 0
    while frontier.any():
        hops += 1
        frontier = (adjacency @ frontier.astype(np.float32) > 0) & np.isinf(distance)
        distance[frontier] = hops
    return distance


def correlation(x: Tensor) -> Tensor:
    """Pearson correlations of the columns of x [n, d], as [d, d]; 0 for constant columns and on the diagonal."""
    mean = _column_mean(x)
    z = x - mean
    deviation = z.square().mean(dim=0).sqrt()
    z *= torch.where(deviation > CONSTANT * mean.abs(), 1 / deviation, 0)
    return (z.T @ z / len(x)).fill_diagonal_(0)


def _column_mean(x: Tensor) -> Tensor:
    return x.mean(dim=0, dtype=torch.float64).to(x.dtype)
