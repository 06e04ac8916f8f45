"""Graph operators and the partial aggregations, as sparse matrices (no torch).

Notation: Ã = A + I, d̃_i = Σ_j Ã_ij, Â = D̃^{-1/2} Ã D̃^{-1/2}, d̂_i = Σ_j Â_ij, Ā = D̃^{-1} Ã.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from pagnn_bench.missing.mask import Observed


def with_self_loops(adjacency: sp.csr_array) -> sp.csr_array:
    """Ã = A + I, CSR float64 [n, n]."""
    return sp.csr_array(adjacency.astype(np.float64) + sp.eye_array(adjacency.shape[0], format="csr"))


def symmetric_operator(adjacency: sp.csr_array) -> sp.csr_array:
    """Â, the propagation of GCN (eq. 3 of the paper), CSR float64 [n, n]."""
    loops = with_self_loops(adjacency)
    scale = sp.diags_array(loops.sum(axis=1) ** -0.5)
    return sp.csr_array(scale @ loops @ scale)


def mean_operator(adjacency: sp.csr_array) -> sp.csr_array:
    """Ā, the mean over the closed neighbourhood (eq. 2 of the paper), CSR float64 [n, n]."""
    loops = with_self_loops(adjacency)
    return sp.csr_array(sp.diags_array(1.0 / loops.sum(axis=1)) @ loops)


def aggregation(adjacency: sp.csr_array, norm: str) -> tuple[sp.csr_array, sp.csr_array]:
    """The weights N and K, CSR float64 [n, n], of a partial aggregation G = N(M ⊙ H) ⊘ KM.

    - ``m``, PaGNN-M (eq. 12 of the paper): N = K = Ã.
    - ``n``, PaGNN-N (eq. 13): N = diag(d̂) Â and K = Â, as (ÂE)_if = d̂_i.
    - ``pagcn``, the authors' successor (see :mod:`pagnn_bench.baselines.pagcn`): N = D̃^{1/2} Ã D̃^{-1/2} and K = Ã.
    """
    loops = with_self_loops(adjacency)
    if norm == "m":
        return loops, loops
    if norm == "n":
        weights = symmetric_operator(adjacency)
        return sp.csr_array(sp.diags_array(weights.sum(axis=1)) @ weights), weights
    if norm == "pagcn":
        root = np.sqrt(loops.sum(axis=1))
        return sp.csr_array(sp.diags_array(root) @ loops @ sp.diags_array(1.0 / root)), loops
    raise ValueError(f"norm={norm!r}: 'm', 'n' or 'pagcn'")


@dataclass(frozen=True)
class PartialAggregate:
    """Result of :func:`partial_aggregate`.

    Attributes:
        values: G, CSR float32 [n, d].
        empty_share: share of (node, attribute) pairs without an observed neighbour, where 0/0 became 0.
        reached: bool [n], False for nodes that no observed value reaches: all their pairs are empty.
    """

    values: sp.csr_array
    empty_share: float
    reached: np.ndarray


def partial_aggregate(
    adjacency: sp.csr_array, features: sp.csr_array, observed: Observed, norm: str
) -> PartialAggregate:
    """Layer-1 aggregation over only the observed neighbours: G = N(M ⊙ H) ⊘ KM, see :func:`aggregation`.

    A pair without an observed neighbour, 0/0, is 0: the minimum-norm solution of the paper's least-squares problem.

    Args:
        adjacency: A, CSR [n, n].
        features: M ⊙ H, CSR [n, d], hidden entries absent.
        observed: M.
        norm: ``m``, ``n`` or ``pagcn``.
    """
    weights, counts = aggregation(adjacency, norm)
    if observed.rows is not None:
        # Whole rows: the denominator is one number per node, so the ratio is a graph operator, too.
        operator, reached = _partial_operator(weights, counts, observed.rows)
        values = sp.csr_array(operator @ features.astype(np.float64))
        empty_share = 1.0 - float(reached.mean())
    else:
        values, empty_share, reached = _divide_cells(weights, counts, features, observed)
    values.sort_indices()
    return PartialAggregate(values.astype(np.float32), empty_share, reached)


def partial_operator(adjacency: sp.csr_array, rows: np.ndarray, norm: str) -> sp.csr_array:
    """The partial aggregation as a matrix [n, n] for a mask of whole rows (``rows`` bool [n])."""
    return _partial_operator(*aggregation(adjacency, norm), rows)[0]


def _partial_operator(
    weights: sp.csr_array, counts: sp.csr_array, rows: np.ndarray
) -> tuple[sp.csr_array, np.ndarray]:
    factor = _inverse(counts @ rows.astype(np.float64))
    operator = sp.csr_array(sp.diags_array(factor) @ weights @ sp.diags_array(rows.astype(np.float64)))
    operator.eliminate_zeros()
    return operator, factor > 0


def _divide_cells(
    weights: sp.csr_array, counts: sp.csr_array, features: sp.csr_array, observed: Observed
) -> tuple[sp.csr_array, float, np.ndarray]:
    """The ratio with a separate denominator for every (node, attribute), in blocks of columns.

    Only denominators of non-zero numerators are kept, so memory stays at the size of the sparse result.
    """
    numerator = sp.csc_array(weights @ features.astype(np.float64))
    numerator.sort_indices()
    columns = np.repeat(np.arange(numerator.shape[1]), np.diff(numerator.indptr))
    empty = 0
    reached = np.zeros(numerator.shape[0], dtype=bool)
    for start, stop, block in observed.column_blocks():
        denominator = counts @ block.astype(np.float64)
        blind = denominator == 0
        empty += int(blind.sum())
        reached |= ~blind.all(axis=1)
        inside = slice(numerator.indptr[start], numerator.indptr[stop])
        numerator.data[inside] /= denominator[numerator.indices[inside], columns[inside] - start]
    return sp.csr_array(numerator), empty / np.prod(observed.shape), reached


def partial_correction(adjacency: sp.csr_array, observed: Observed, norm: str) -> np.ndarray:
    """The factor C with G = N(M ⊙ H) ⊙ C: 1 ⊘ KM, 0 where the denominator is 0.

    Returns:
        float64 [n, 1] for whole-row masks, [n, d] for masks of single entries.
    """
    _, counts = aggregation(adjacency, norm)
    mask = observed.rows[:, None] if observed.rows is not None else observed.dense()
    return _inverse(counts @ mask.astype(np.float64))


def _inverse(values: np.ndarray) -> np.ndarray:
    """1/x, and 0 for x = 0."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
