"""The parts of SAT: which pairs links are learned from, losses that equal naive ones, and what is held out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
import torch.nn.functional as F

from pagnn_bench.baselines.sat_model import AdjacencyLoss, FeatureLoss, hold_out, recall, sample_pairs
from pagnn_bench.nn.propagate import symmetric_operator
from tests.conftest import random_graph

CPU = torch.device("cpu")


def dense_pairs(pairs: sp.csr_array) -> dict[tuple[int, int], float]:
    return {(int(i), int(j)): float(v) for (i, j), v in zip(zip(*pairs.tocoo().coords), pairs.data)}


# The pairs that links are learned from


@pytest.mark.parametrize("seed", range(5))
def test_pairs_are_all_links_and_as_many_others(seed):
    operator = symmetric_operator(random_graph(seed=seed, nodes=30).adjacency)
    pairs = sample_pairs(operator, np.random.default_rng(seed))
    found = dense_pairs(pairs)
    linked = set(zip(*(axis.tolist() for axis in operator.nonzero())))
    assert {pair for pair, target in found.items() if target == 1} == linked
    assert {(i, i) for i in range(30)} <= linked
    others = [pair for pair, target in found.items() if target == 0]
    # None twice, none of them a link or a node with itself.
    assert len(others) == len(linked) == pairs.nnz / 2
    assert all(i != j for i, j in others)


def test_unlinked_pairs_are_drawn_evenly(path3):
    """The path has two such pairs, (0, 2) and (2, 0); a graph without links n(n - 1), n of which are drawn."""
    operator = symmetric_operator(path3)
    found = dense_pairs(sample_pairs(operator, np.random.default_rng(0)))
    assert {pair for pair, target in found.items() if target == 0} == {(0, 2), (2, 0)}
    empty = symmetric_operator(sp.csr_array((4, 4), dtype=np.float32))
    count = np.zeros((4, 4))
    for seed in range(600):
        pairs = sample_pairs(empty, np.random.default_rng(seed))
        for (i, j), target in dense_pairs(pairs).items():
            count[i, j] += target == 0
    assert (np.diag(count) == 0).all()
    assert count[~np.eye(4, dtype=bool)] == pytest.approx(200, abs=60)  # a standard deviation is 12


def test_no_pair_is_left_in_a_complete_graph():
    complete = sp.csr_array(np.ones((3, 3), dtype=np.float32) - np.eye(3, dtype=np.float32))
    assert sample_pairs(symmetric_operator(complete), np.random.default_rng(0)).nnz == 9
    one = symmetric_operator(sp.csr_array((1, 1), dtype=np.float32))
    assert dense_pairs(sample_pairs(one, np.random.default_rng(0))) == {(0, 0): 1.0}


def test_the_loss_on_pairs_equals_the_loss_on_the_dense_matrix():
    operator = symmetric_operator(random_graph(nodes=30).adjacency)
    pairs = sample_pairs(operator, np.random.default_rng(1))
    q = torch.randn(30, 5, generator=torch.Generator().manual_seed(0)).requires_grad_()
    loss = AdjacencyLoss(pairs, CPU)(q)
    (grad,) = torch.autograd.grad(3 * loss, q)

    row, column = (torch.from_numpy(axis).long() for axis in pairs.tocoo().coords)
    links = torch.from_numpy((operator.toarray() != 0).astype(np.float32))
    naive = F.binary_cross_entropy_with_logits((q @ q.T)[row, column], links[row, column])
    torch.testing.assert_close(loss, naive)
    torch.testing.assert_close(grad, torch.autograd.grad(3 * naive, q)[0])


@pytest.mark.parametrize("binary", [True, False])
def test_weighted_cross_entropy_equals_the_naive_one(binary):
    rng = torch.Generator().manual_seed(0)
    target = torch.rand(6, 9, generator=rng)
    target = (target < 0.2).float() if binary else target
    logits = (4 * torch.randn(6, 9, generator=rng)).requires_grad_()
    weight = 7.5
    (grad,) = torch.autograd.grad(3 * FeatureLoss(target, weight)(logits), logits)

    for x, logit, found in zip(*(values.flatten().tolist() for values in (target, logits, grad))):
        p = 1 / (1 + math.exp(-logit))  # the loss of an entry is - w x log p - (1 - x) log(1 - p)
        assert found == pytest.approx(3 * ((1 - x) * p - weight * x * (1 - p)) / 54, rel=1e-4, abs=1e-7)
    naive = F.binary_cross_entropy_with_logits(logits, target, pos_weight=torch.tensor(weight))
    torch.testing.assert_close(grad, torch.autograd.grad(3 * naive, logits)[0])


def test_recall_by_hand():
    scores = torch.tensor([[0.9, 0.1, 0.8, 0.0], [0.1, 0.2, 0.3, 0.4], [1.0, 1.0, 0.0, 0.0]])
    truth = torch.tensor([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    assert recall(scores, truth, 2) == pytest.approx((1 / 2 + 1) / 2)  # the last row has nothing to find
    assert recall(scores, truth, 10) == 1.0


def test_hold_out_splits_the_observed_nodes():
    nodes = np.arange(0, 100, 2)
    learned, held = hold_out(nodes, 0.2, np.random.default_rng(0))
    assert len(held) == 10
    assert sorted([*learned, *held]) == nodes.tolist()
    learned, held = hold_out(np.array([4, 9]), 0.2, np.random.default_rng(0))
    assert len(learned) == len(held) == 1
    assert [part.tolist() for part in hold_out(np.array([4]), 0.2, np.random.default_rng(0))] == [[4], [4]]
