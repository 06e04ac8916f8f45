"""FISF, "Propagate and Inject": Um et al., ICML 2025 (OpenReview QfKrcgyase)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from pagnn_bench.baselines.fp import diffuse
from pagnn_bench.baselines.pcfi import hop_distance
from pagnn_bench.config.identity import seed_for
from pagnn_bench.methods.base import Context
from pagnn_bench.methods.imputation import ImputationMethod
from pagnn_bench.methods.values import fraction, whole
from pagnn_bench.missing import IncompleteGraph, Observed
from pagnn_bench.nn.propagate import with_self_loops


class FISF(ImputationMethod):
    """Diffusion after which nearly constant attributes get one random value each and are diffused again.

    S_if is the number of hops from node i to the nearest node with attribute f observed. First, for all attributes at
    once, K steps with the observed entries reset (the first half of PCFI)::

        X ← Ã(c ⊙ X) ⊘ Ãc        c_if = α^{S_if}

    L is the γ share of the attributes whose column of X varies least. For f in L a node r_f without attribute f is
    drawn, and a value u_f; x_{r_f f} = u_f counts as observed from then on. With S'_if hops from i to r_f, the columns
    of L are diffused again, starting from zero and with c_if = α^{S_if} β^{S'_if}.

    c = 0 where no observation can be reached. A component without r_f has no injection, so β^{S'} is left out there.

    The released code differs: r_f may be an observed node, whose value is then overwritten; draws do not depend on
    the run's seed; for single missing entries S counts r_f as an observation, while for whole rows (and here always)
    it does not; S = S' = 0 where nothing can be reached.

    Args:
        num_iterations: K.
        alpha: α, in [0, 1).
        beta: β, in [0, 1).
        gamma: γ, in [0, 1).
        **common: see :class:`~pagnn_bench.methods.base.TwoLayerMethod`.
    """

    def __init__(self, num_iterations: int, alpha: float, beta: float, gamma: float, **common: Any) -> None:
        super().__init__(**common)
        self.num_iterations = whole("num_iterations", num_iterations)
        self.alpha, self.beta = fraction("alpha", alpha), fraction("beta", beta)
        self.gamma = fraction("gamma", gamma)

    def impute(self, graph: IncompleteGraph, context: Context) -> np.ndarray:
        operator, steps, device = with_self_loops(graph.adjacency), self.num_iterations, context.device
        confidence = self.alpha ** hop_distance(graph.adjacency, graph.observed)
        filled = diffuse(operator, graph.features, graph.observed, steps, device, confidence)
        flat = self._flat(filled, graph.observed)
        if not len(flat):
            return filled
        rng = np.random.default_rng(seed_for("injection", seed=context.seed))
        known = graph.observed.dense()[:, flat]
        nodes = draw_missing(known, rng)
        at = (nodes, np.arange(len(flat)))
        values = graph.features[:, flat].toarray()
        values[at] = draw_values(graph, flat, rng)
        source = np.zeros(known.shape, dtype=bool)
        source[at] = True
        hops = hop_distance(graph.adjacency, Observed(source.shape, cells=source))
        if confidence.shape[1] > 1:
            confidence = confidence[:, flat]
        confidence = confidence * np.where(np.isinf(hops), 1, self.beta**hops)
        fixed = Observed(known.shape, cells=known | source)
        filled[:, flat] = diffuse(operator, sp.csr_array(values), fixed, steps, device, confidence)
        return filled

    def _flat(self, filled: np.ndarray, observed: Observed) -> np.ndarray:
        """L: the columns of X [n, d] that vary least; one that is observed everywhere stays as it is."""
        least = np.argsort(filled.var(axis=0, dtype=np.float64), kind="stable")
        least = np.sort(least[: int(self.gamma * len(least))])
        return least[~observed.dense()[:, least].all(axis=0)]


def draw_missing(known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One row for every column of ``known`` (bool [n, k]), drawn uniformly where it is False; int [k]."""
    return np.where(known, np.float32(-1), rng.random(known.shape, dtype=np.float32)).argmax(axis=0)


def draw_values(graph: IncompleteGraph, columns: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One value per column, float32 [k]: U(0, 1), as in the paper, if all observed values lie in [0, 1].

    Otherwise uniform in the range of the column's observed values, or of all columns if there are fewer than two.
    """
    drawn = rng.random(len(columns), dtype=np.float32)
    values, known = graph.features.toarray(), graph.observed.dense()
    low, high = values.min(where=known, initial=0), values.max(where=known, initial=1)
    if low == 0 and high == 1:
        return drawn
    values, known = values[:, columns], known[:, columns]
    lows = values.min(axis=0, where=known, initial=np.inf)
    highs = values.max(axis=0, where=known, initial=-np.inf)
    spread = lows < highs
    lows, highs = np.where(spread, lows, low), np.where(spread, highs, high)
    return (lows + (highs - lows) * drawn).astype(np.float32)
