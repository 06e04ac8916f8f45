"""How well hidden attributes are recovered: scikit-learn's numbers, and chance where nothing is known."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import ndcg_score

from pagnn_bench.methods import recovery as module
from pagnn_bench.methods.recovery import expected_gains, recovery
from pagnn_bench.missing import Observed


def words(rng: np.random.Generator, nodes: int = 40, columns: int = 90) -> np.ndarray:
    return (rng.random((nodes, columns)) < 0.1).astype(np.float32)


@pytest.mark.parametrize("levels", [4, 10**6])  # many ties, and none
@pytest.mark.parametrize("sparse", [False, True])
def test_rankings_equal_scikit_learn(levels, sparse):
    rng = np.random.default_rng(levels)
    truth = words(rng)
    hidden = rng.random(truth.shape) < 0.8
    hidden[3], hidden[5] = False, truth[5] == 0  # nothing hidden, and no ones hidden
    filled = np.where(hidden, rng.integers(levels, size=truth.shape) / levels, truth).astype(np.float32)
    given = sp.csr_array(filled) if sparse else filled
    found = recovery(given, sp.csr_array(truth), Observed(truth.shape, cells=~hidden), rows=7)
    for k in module.DEPTHS:
        rows = [i for i in range(len(truth)) if truth[i, hidden[i]].any()]
        pairs = [(truth[i, hidden[i]][None], filled[i, hidden[i]][None]) for i in rows]
        assert found[f"impute_ndcg@{k}"] == pytest.approx(np.mean([ndcg_score(*pair, k=k) for pair in pairs]))
    assert len(rows) == len(truth) - 2


def naive_gains(score: np.ndarray, ones: np.ndarray, depth: int) -> np.ndarray:
    """Mean over all orders that are in order of the score."""
    orders = [order for order in permutations(range(len(score))) if (np.diff(score[list(order)]) <= 0).all()]
    return np.mean([ones[list(order)][:depth] for order in orders], axis=0)


def test_equal_scores_share_their_places():
    rng = np.random.default_rng(0)
    score, ones = rng.integers(3, size=(60, 6)).astype(float), rng.random((60, 6)) < 0.4
    for depth in (1, 2, 4, 6, 9):
        expected = [naive_gains(*row, depth) for row in zip(score, ones)]
        np.testing.assert_allclose(expected_gains(score, ones, depth), expected)


def test_recall_by_hand_and_of_whole_nodes(monkeypatch):
    monkeypatch.setattr(module, "DEPTHS", (1, 2))
    truth = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [1, 1, 1, 1]], dtype=np.float32)
    filled = np.array([[0.9, 0.1, 0.5, 0], [0.2, 0.2, 0.2, 0.2], [1, 1, 1, 1]], dtype=np.float32)
    observed = Observed(truth.shape, rows=np.array([False, False, True]))
    found = recovery(filled, sp.csr_array(truth), observed)
    assert found["impute_recall@1"] == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert found["impute_recall@2"] == pytest.approx((1 / 2 + 2 / 4) / 2)
    second = 1 / np.log2(3)
    assert found["impute_ndcg@2"] == pytest.approx((1 / (1 + second) + (1 + second) / 4) / 2)


def test_correlation_equals_numpy_column_by_column():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(60, 5)) * [1, 1e4, 1, 1, 1] + [0, 1e6, 0, 0, 0]
    truth[:, 3] = rng.random(60) < 0.5  # words do not count
    truth[:, 4] = 7  # does not vary
    filled = truth + rng.normal(size=truth.shape) * [1, 1e4, 0, 1, 1]
    filled[:, 2] = 0.5  # tells nothing: 0
    cells = rng.random(truth.shape) < 0.4
    filled = np.where(cells, truth, filled).astype(np.float32)
    found = recovery(
        filled, sp.csr_array(truth.astype(np.float32)), Observed(truth.shape, cells=cells), rows=9
    )
    each = [np.corrcoef(filled[~cells[:, k], k], truth[~cells[:, k], k])[0, 1] for k in (0, 1)]
    assert found == pytest.approx({"impute_corr": (sum(each) + 0) / 3}, rel=1e-5)


@pytest.mark.parametrize("values", [[0.0, 1.0], [0.0, 2.5]])
def test_nothing_hidden_tells_nothing(values):
    truth = sp.csr_array(np.array([values, values], dtype=np.float32))
    assert recovery(truth, truth, Observed((2, 2), rows=np.ones(2, dtype=bool))) == {}
