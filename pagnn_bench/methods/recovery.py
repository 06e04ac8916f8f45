"""How well hidden attributes are recovered: by the ranking of words, or the correlation of numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from pagnn_bench.missing import Observed

DEPTHS = (10, 20, 50)  # of the rankings, as in SAT's paper and later ones


def recovery(
    filled: sp.csr_array | np.ndarray, truth: sp.csr_array, observed: Observed, rows: int = 2048
) -> dict[str, float]:
    """Recall@k and nDCG@k if all attributes are 0 or 1, else the correlation; over hidden entries only.

    For a node with hidden ones O, its hidden attributes are ranked by the filled value. Recall@k is the share of O
    among the first k. DCG@k is the sum of 1 / log2(1 + rank) over the ones among the first k, and nDCG@k its ratio to
    that of the best ranking. Both are means over the nodes that have hidden ones. Equal values share their ranks: each
    counts as the mean over all orders, so a constant filling scores no better than chance.

    The correlation is Pearson's between filled and true values of a column, averaged over the columns that have other
    values than 0 and 1 and vary where they are hidden; it is 0 where the filled values do not vary.

    Args:
        filled: [n, d], the features with the missing entries filled in.
        truth: [n, d], the complete features.
        observed: the mask.
        rows: nodes at a time, to avoid a second dense copy of the matrices.

    Returns:
        ``impute_recall@10`` and so on, ``impute_ndcg@10`` and so on, or ``impute_corr``. Empty if nothing that counts
        is hidden.
    """
    if np.isin(truth.data, (0.0, 1.0)).all():
        return _ranking(filled, truth, observed, rows)
    return _correlation(filled, truth, observed, rows)


def _blocks(
    filled: sp.csr_array | np.ndarray, truth: sp.csr_array, observed: Observed, rows: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(filled, truth, hidden), each [b, d], of the nodes with hidden entries."""
    for start in range(0, filled.shape[0], rows):
        block = slice(start, start + rows)
        hidden = ~observed.dense()[block]
        nodes = np.flatnonzero(hidden.any(axis=1))
        guess = filled[block][nodes]
        dense = guess if isinstance(guess, np.ndarray) else guess.toarray()
        yield dense, truth[block][nodes].toarray(), hidden[nodes]


def _ranking(
    filled: sp.csr_array | np.ndarray, truth: sp.csr_array, observed: Observed, rows: int
) -> dict[str, float]:
    recall, ndcg, nodes = np.zeros(len(DEPTHS)), np.zeros(len(DEPTHS)), 0
    for guess, x, hidden in _blocks(filled, truth, observed, rows):
        ones = hidden & (x != 0)
        ranked = ones.any(axis=1)
        if not ranked.any():
            continue
        score = np.where(hidden, guess, -np.inf)[ranked]
        gains = expected_gains(score, ones[ranked], max(DEPTHS))
        count = ones[ranked].sum(axis=1)
        discount = 1 / np.log2(np.arange(gains.shape[1]) + 2)
        best = np.concatenate([[0.0], discount.cumsum()])
        for place, k in enumerate(DEPTHS):
            recall[place] += (gains[:, :k].sum(axis=1) / count).sum()
            ideal = best[np.minimum(count, min(k, len(best) - 1))]
            ndcg[place] += ((gains * discount)[:, :k].sum(axis=1) / ideal).sum()
        nodes += len(count)
    if nodes == 0:
        return {}
    scores = {f"impute_recall@{k}": float(total) / nodes for k, total in zip(DEPTHS, recall)}
    return scores | {f"impute_ndcg@{k}": float(total) / nodes for k, total in zip(DEPTHS, ndcg)}


def expected_gains(score: np.ndarray, ones: np.ndarray, depth: int) -> np.ndarray:
    """The probability of a one at each of the first places of a ranking, with equal scores in random order.

    Args:
        score: [b, d], high is first.
        ones: bool [b, d].
        depth: maximum number of places.

    Returns:
        [b, min(depth, d)].
    """
    depth = min(depth, score.shape[1])
    top = np.argpartition(-score, depth - 1, axis=1)[:, :depth]
    order = np.argsort(-np.take_along_axis(score, top, axis=1), axis=1, kind="stable")
    top = np.take_along_axis(top, order, axis=1)
    value = np.take_along_axis(score, top, axis=1)
    gain = np.take_along_axis(ones, top, axis=1).astype(np.float64)
    # Places with the same score form a group; all groups of a row except the last are complete among these places.
    new = np.ones(value.shape, dtype=bool)
    new[:, 1:] = value[:, 1:] != value[:, :-1]
    group = np.cumsum(new.ravel()) - 1
    mean = np.bincount(group, weights=gain.ravel()) / np.bincount(group)
    gains = mean[group].reshape(value.shape)
    last = value[:, -1:]
    tied = score == last  # the last group may extend beyond these places
    chance = (tied & ones).sum(axis=1, keepdims=True) / tied.sum(axis=1, keepdims=True)
    return np.where(value == last, chance, gains)


def _correlation(
    filled: sp.csr_array | np.ndarray, truth: sp.csr_array, observed: Observed, rows: int
) -> dict[str, float]:
    sums = np.zeros((6, truth.shape[1]))  # of each column: count, Σp, Σx, Σp², Σx², Σpx over hidden entries
    for guess, x, hidden in _blocks(filled, truth, observed, rows):
        p, x = np.where(hidden, guess, 0).astype(np.float64), np.where(hidden, x, 0).astype(np.float64)
        parts = (hidden, p, x, p * p, x * x, p * x)
        sums += [part.sum(axis=0) for part in parts]
    count = sums[0].clip(1)
    mean_p, mean_x, pp, xx, px = sums[1:] / count
    var_p, var_x = pp - mean_p**2, xx - mean_x**2
    counts = ~_binary_columns(truth) & (var_x > 1e-12 * xx)
    if not counts.any():
        return {}
    varies = counts & (var_p > 1e-12 * pp)
    cosine = (px - mean_p * mean_x)[varies] / np.sqrt(var_p[varies] * var_x[varies])
    return {"impute_corr": float(cosine.sum()) / int(counts.sum())}


def _binary_columns(features: sp.csr_array) -> np.ndarray:
    """bool [d]: columns with nothing but 0 and 1."""
    other = features.indices[~np.isin(features.data, (0.0, 1.0))]
    return ~np.isin(np.arange(features.shape[1]), other)
