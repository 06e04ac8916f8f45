"""Graph operators and the two partial aggregations of the paper, as sparse matrices (no torch).

Notation: Ã = A + I, d̃_i = Σ_j Ã_ij, Â = D̃^{-1/2} Ã D̃^{-1/2}, d̂_i = Σ_j Â_ij, Ā = D̃^{-1} Ã.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from pagnn_bench.missing import Observed


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


def aggregation(adjacency: sp.csr_array, norm: str) -> tuple[sp.csr_array, np.ndarray]:
    """Weights and scale that define a partial aggregation: ``m`` → (Ã, 1), ``n`` → (Â, d̂)."""
    if norm == "m":
        return with_self_loops(adjacency), np.ones(adjacency.shape[0])
    if norm == "n":
        weights = symmetric_operator(adjacency)
        return weights, weights.sum(axis=1)
    raise ValueError(f"norm={norm!r}: 'm' or 'n'")


@dataclass(frozen=True)
class PartialAggregate:
    """Result of :func:`partial_aggregate`.

    Attributes:
        values: G, CSR float32 [n, d].
        empty_share: share of (node, attribute) pairs without any observed neighbour, where 0/0 became 0.
        sighted: bool [n], False for nodes all of whose pairs are empty.
    """

    values: sp.csr_array
    empty_share: float
    sighted: np.ndarray


def partial_aggregate(
    adjacency: sp.csr_array, features: sp.csr_array, observed: Observed, norm: str
) -> PartialAggregate:
    """Layer-1 aggregation of PaGNN over the observed neighbours only.

    PaGNN-M (eq. 12): G = Ã(M ⊙ H) ⊘ ÃM.  PaGNN-N (eq. 13): G = ÂE ⊙ Â(M ⊙ H) ⊘ ÂM, with (ÂE)_if = d̂_i.
    0/0, a pair that no neighbour has observed, is 0: the minimum-norm solution of the paper's least-squares problem.

    Args:
        adjacency: A, CSR [n, n].
        features: M ⊙ H, CSR [n, d], hidden entries absent.
        observed: M.
        norm: ``m`` or ``n``.
    """
    weights, scale = aggregation(adjacency, norm)
    if observed.rows is not None:
        # Whole rows: the denominator is one number per node, so the ratio is again a graph operator.
        operator, sighted = _partial_operator(weights, scale, observed.rows)
        values = sp.csr_array(operator @ features.astype(np.float64))
        empty_share = 1.0 - float(sighted.mean())
    else:
        values, empty_share, sighted = _divide_cells(weights, scale, features, observed)
    values.sort_indices()
    return PartialAggregate(values.astype(np.float32), empty_share, sighted)


def partial_operator(adjacency: sp.csr_array, rows: np.ndarray, norm: str) -> sp.csr_array:
    """The partial aggregation as a matrix [n, n] when whole rows are observed or not (``rows`` bool [n])."""
    return _partial_operator(*aggregation(adjacency, norm), rows)[0]


def _partial_operator(
    weights: sp.csr_array, scale: np.ndarray, rows: np.ndarray
) -> tuple[sp.csr_array, np.ndarray]:
    denominator = weights @ rows.astype(np.float64)
    sighted = denominator > 0
    factor = np.divide(scale, denominator, out=np.zeros_like(denominator), where=sighted)
    operator = sp.csr_array(sp.diags_array(factor) @ weights @ sp.diags_array(rows.astype(np.float64)))
    operator.eliminate_zeros()
    return operator, sighted


def _divide_cells(
    weights: sp.csr_array, scale: np.ndarray, features: sp.csr_array, observed: Observed
) -> tuple[sp.csr_array, float, np.ndarray]:
    """Ratio with a denominator of its own for every (node, attribute), block of columns by block of columns.

    Only the denominators under a non-zero numerator are kept, so memory stays at the size of the sparse result.
    """
    numerator = sp.csc_array(weights @ features.astype(np.float64))
    numerator.sort_indices()
    columns = np.repeat(np.arange(numerator.shape[1]), np.diff(numerator.indptr))
    empty = 0
    sighted = np.zeros(numerator.shape[0], dtype=bool)
    for start, stop, block in observed.column_blocks():
        denominator = weights @ block.astype(np.float64)
        blind = denominator == 0
        empty += int(blind.sum())
        sighted |= ~blind.all(axis=1)
        inside = slice(numerator.indptr[start], numerator.indptr[stop])
        nodes = numerator.indices[inside]
        numerator.data[inside] *= scale[nodes] / denominator[nodes, columns[inside] - start]
    return sp.csr_array(numerator), empty / np.prod(observed.shape), sighted


def partial_correction(adjacency: sp.csr_array, observed: Observed, norm: str) -> np.ndarray:
    """The factor C with G = (weights (M ⊙ H)) ⊙ C: scale ⊘ denominator, 0 where the denominator is 0.

    Returns:
        float64 [n, 1] for whole-row masks, [n, d] for masks of single entries.
    """
    weights, scale = aggregation(adjacency, norm)
    mask = observed.rows[:, None] if observed.rows is not None else observed.dense()
    denominator = weights @ mask.astype(np.float64)
    return np.divide(scale[:, None], denominator, out=np.zeros_like(denominator), where=denominator > 0)
