"""ARB, AttriReBoost: diffusion with a soft boundary and a link between all nodes (arXiv 2501.00743)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pagnn_bench.baselines.arb_search import boost, search_constants
from pagnn_bench.baselines.fp import BLOCK_ENTRIES
from pagnn_bench.baselines.label_prop import plain_operator
from pagnn_bench.config.identity import seed_for
from pagnn_bench.methods.base import Context, Signal
from pagnn_bench.methods.imputation import ImputationMethod
from pagnn_bench.methods.values import flag, fraction, whole
from pagnn_bench.missing import IncompleteGraph
from pagnn_bench.nn.sparse import csr_tensor


class ARB(ImputationMethod):
    """Feature propagation that mixes in the mean over all nodes and does not fix observed entries::

        X ← α S X + (1 - α) mean over nodes of X        S = D^{-1/2} A D^{-1/2}, no self loops
        X ← β X + (1 - β) X⁽⁰⁾ where observed           X⁽⁰⁾ = M ⊙ X

    α = 1, β = 0 is FP without self loops. With L = I - S, L_K the Laplacian of the complete graph over its degree and
    I_M the observed nodes of an attribute, the limit solves::

        (L + η I_M + θ L_K) X = η I_M X⁽⁰⁾        η = (1/β - 1)/α,  θ = (1 - 1/n)(1/α - 1)

    Attributes that are not 0 or 1 have their observed mean subtracted first and added at the end.

    The released code searches α, β and the number of steps on the true attributes of further nodes. Here ``search``
    uses a tenth of the observations, which it does not start from: by Recall@10 of nodes, or by the squared error if
    attributes are not binary, as in that code. If single entries are missing, which it does not handle, a tenth of the
    observed entries is ranked at once, and the score is the share of ones among the highest, as many as there are ones.
    Where little is observed that is noise (one held-out node on Cora at rate 0.995), so it is not the default.

    Other differences: the released code returns the changed observed entries, which keep their values here; and it
    starts with 0 in missing entries even if the others are centred.

    Args:
        num_iterations: number of steps; in a search, the maximum.
        search: choose the constants as above.
        alpha, beta: α and β, in [0, 1), without a search, or if nothing can be held out.
        **common: see :class:`~pagnn_bench.methods.base.TwoLayerMethod`.
    """

    def __init__(self, num_iterations: int, search: bool, alpha: float, beta: float, **common: Any) -> None:
        super().__init__(**common)
        self.num_iterations, self.search = whole("num_iterations", num_iterations), flag("search", search)
        self.alpha, self.beta = fraction("alpha", alpha), fraction("beta", beta)

    def impute(self, graph: IncompleteGraph, context: Context) -> np.ndarray:
        return self._boosted(graph, context)[0]

    def signal(self, graph: IncompleteGraph, context: Context) -> Signal:
        return self.propagated(graph, *self._boosted(graph, context))

    def _boosted(self, graph: IncompleteGraph, context: Context) -> tuple[np.ndarray, dict[str, float]]:
        """The filled features [n, d], and the constants."""
        values, known = graph.features.toarray(), graph.observed.dense()
        binary = bool(np.isin(graph.features.data, (0, 1)).all())
        mean = np.float32(0)
        if not binary:
            counts = known.sum(axis=0).clip(1)
            mean = (values.sum(axis=0, dtype=np.float64) / counts).astype(np.float32)
        start = np.where(known, values - mean, np.float32(0))
        matrix = csr_tensor(plain_operator(graph.adjacency), context.device)
        constants: tuple[float, float, int] | None = None
        if self.search:
            rng = np.random.default_rng(seed_for("held out", seed=context.seed))
            constants = search_constants(graph.observed, matrix, start, binary, self.num_iterations, rng)
        alpha, beta, steps = constants or (self.alpha, self.beta, self.num_iterations)
        filled = np.empty_like(start)
        for first, stop, block in graph.observed.column_blocks(BLOCK_ENTRIES):
            *_, last = boost(matrix, start[:, first:stop], block, alpha, beta, steps)
            filled[:, first:stop] = last.cpu().numpy()
        return np.where(known, values, filled + mean), {"alpha": alpha, "beta": beta, "steps": steps}
