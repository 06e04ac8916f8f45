"""Feature Propagation (FP): Rossi et al., Learning on Graphs 2022, arXiv 2111.12128."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from pagnn_bench.methods.base import Context
from pagnn_bench.methods.imputation import ImputationMethod
from pagnn_bench.methods.values import whole
from pagnn_bench.missing import IncompleteGraph, Observed
from pagnn_bench.nn.propagate import symmetric_operator
from pagnn_bench.nn.sparse import csr_tensor

# Columns do not meet during diffusion, so all steps of a few columns run before the next few: a block of this many
# entries stays in the processor's cache (twice to five times as fast as whole matrices on the paper's graphs).
BLOCK_ENTRIES = 1 << 18


class FeaturePropagation(ImputationMethod):
    """Diffuses the observed features over the graph and holds the observed entries fixed.

    X⁽⁰⁾ = M ⊙ X, then ``num_iterations`` times X ← ÂX with the observed entries reset. The limit minimises the
    Dirichlet energy: on the missing entries X = ÂX, for every attribute by itself. What no observation reaches is 0.

    Args:
        num_iterations: steps of the diffusion.
        **common: see :class:`~pagnn_bench.methods.base.TwoLayerMethod`.
    """

    def __init__(self, num_iterations: int, **common: Any) -> None:
        super().__init__(**common)
        self.num_iterations = whole("num_iterations", num_iterations)

    def impute(self, graph: IncompleteGraph, context: Context) -> np.ndarray:
        operator = symmetric_operator(graph.adjacency)
        return diffuse(operator, graph.features, graph.observed, self.num_iterations, context.device)


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
        X, float32 [n, d]; observed entries as they were.
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
