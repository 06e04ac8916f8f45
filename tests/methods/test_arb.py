"""ARB: one step by hand, the limit equal to the paper's linear system, constants from observations only."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from pagnn_bench.baselines.arb import ARB
from pagnn_bench.baselines.arb_search import (
    boost,
    halving_search,
    held_out_losses,
    missed_of_all,
    missed_of_nodes,
    search_constants,
    squared_error,
)
from pagnn_bench.baselines.label_prop import plain_operator
from pagnn_bench.config.errors import RequestError
from pagnn_bench.data.graph import Split, build_graph
from pagnn_bench.missing import Observed, hide
from pagnn_bench.nn.sparse import csr_tensor
from tests.conftest import random_graph, random_observed
from tests.methods.learners import CPU, GCN, context


def arb(num_iterations: int = 30, search: bool = True, alpha: float = 0.85, beta: float = 0.7) -> ARB:
    return ARB(num_iterations, search, alpha, beta, **GCN)


def test_one_step_by_hand():
    """0 - 1 - 2, x_0 = 1: SX = (0, 1/√2, 0), mean 1/3; node 0 then gets β (1 - α)/3 + 1 - β, and its value back."""
    one = [np.array([k]) for k in range(3)]
    graph = build_graph("path", np.ones((3, 1)), np.array([[0, 1], [1, 2]]), np.array([0, 1, 0]), Split(*one))
    graph = hide(graph, Observed((3, 1), rows=np.array([True, False, False])))
    alpha, beta = 0.6, 0.3
    rest = (1 - alpha) / 3
    moved = [beta * rest + 1 - beta, alpha / 2**0.5 + rest, rest]
    matrix = csr_tensor(plain_operator(graph.adjacency), CPU)
    [step] = boost(
        matrix, np.array([[1.0], [0], [0]], dtype=np.float32), graph.observed.dense(), alpha, beta, 1
    )
    np.testing.assert_allclose(step.ravel(), moved, rtol=1e-6)
    filled = arb(1, False, alpha, beta).impute(graph, context())
    np.testing.assert_allclose(filled.ravel(), [1, *moved[1:]], rtol=1e-6)


@pytest.mark.parametrize("pattern", ["rows", "cells"])
@pytest.mark.parametrize(("alpha", "beta"), [(0.85, 0.7), (0.5, 0.2)])
def test_the_limit_solves_the_linear_system(pattern, alpha, beta):
    """(L + η I_M + θ L_K) X = η I_M X⁽⁰⁾, attribute by attribute; on a graph with an isolated node."""
    complete = random_graph(seed=6)
    graph = hide(complete, random_observed(complete, pattern))
    n, known = complete.num_nodes, graph.observed.dense()
    eta, theta = (1 / beta - 1) / alpha, (1 - 1 / n) * (1 / alpha - 1)
    laplacian = np.eye(n) - plain_operator(graph.adjacency).toarray()
    complete_laplacian = np.eye(n) * n / (n - 1) - np.ones((n, n)) / (n - 1)
    start = graph.features.toarray()
    limit = np.stack(
        [
            np.linalg.solve(laplacian + eta * np.diag(m) + theta * complete_laplacian, eta * m * x)
            for m, x in zip(known.T.astype(float), start.T)
        ],
        axis=1,
    )
    *_, found = boost(csr_tensor(plain_operator(graph.adjacency), CPU), start, known, alpha, beta, 500)
    np.testing.assert_allclose(found, limit, atol=1e-5)
    filled = arb(500, False, alpha, beta).impute(graph, context())
    np.testing.assert_allclose(filled, np.where(known, start, limit), atol=1e-5)


def test_other_attributes_than_0_and_1_are_centred_by_what_is_observed():
    """So a shift of all values is a shift of what is filled in, and hidden values are no part of the mean."""
    complete = random_graph()
    values = np.random.default_rng(0).normal(5, 2, size=complete.features.shape).astype(np.float32)
    observed = random_observed(complete, "rows")
    first, second = (
        arb().impute(
            hide(dataclasses.replace(complete, features=type(complete.features)(x)), observed), context()
        )
        for x in (values, values + 100)
    )
    np.testing.assert_allclose(second, first + 100, atol=2e-3)


@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_losses_are_those_of_what_reaches_the_entries_held_out(pattern, monkeypatch):
    """After every step; attributes in blocks of two. What stands in the entries held out does not guide anything."""
    monkeypatch.setattr("pagnn_bench.baselines.arb_search.BLOCK_ENTRIES", 2 * 40)
    complete = random_graph(seed=1)
    known = random_observed(complete, pattern).dense()
    held = known & random_observed(complete, pattern, seed=5).dense()
    assert 10 < held.sum() < known.sum() - 10
    start = np.where(known, complete.features.toarray(), 0).astype(np.float32)
    truth = torch.from_numpy(start[held])
    spoiled = np.where(held, np.nan, start).astype(np.float32)
    matrix = csr_tensor(plain_operator(complete.adjacency), CPU)
    found = held_out_losses(matrix, spoiled, known & ~held, held, 4, squared_error(truth))(0.8, 0.3)
    steps = boost(matrix, np.where(held, 0, start), known & ~held, 0.8, 0.3, 4)
    expected = [((x.numpy() - start)[held] ** 2).mean() for x in steps]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_what_counts_by_hand():
    """Two nodes with ones at (0, 2) and (1); the highest two of each are (0, 1) and (0, 1): recall (1/2 + 1)/2.

    Of all six the three highest are two of node 0, of which one is a 1, and one of node 1, a 1.
    """
    truth = torch.tensor([1.0, 0, 1, 0, 1, 0])
    scores = torch.tensor([0.9, 0.8, 0.1, 0.5, 0.7, 0.2])
    assert missed_of_nodes(truth, 2, 2)(scores) == pytest.approx(1 - 0.75)
    assert missed_of_all(truth)(scores) == pytest.approx(1 / 3)
    assert squared_error(truth)(scores) == pytest.approx((0.01 + 0.64 + 0.81 + 0.25 + 0.09 + 0.04) / 6)


@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_the_search_prefers_neighbours_that_tell(pattern):
    """Two cliques with words of their own. The mean of all nodes (α = 0) ranks no word above another."""
    nodes, words = 40, 10
    side = np.arange(nodes) % 2
    own = (side[:, None] == np.arange(words) % 2).astype(np.float32)
    edges = np.stack(np.nonzero(np.triu(side[:, None] == side, 1)))
    split = Split(*(np.array([2 * k, 2 * k + 1]) for k in range(3)))
    graph = build_graph("cliques", own, edges, side, split)
    observed = random_observed(graph, pattern, 0.3)
    matrix, rng = csr_tensor(plain_operator(graph.adjacency), CPU), np.random.default_rng(0)
    start = np.where(observed.dense(), own, 0).astype(np.float32)
    alpha, _, _ = search_constants(observed, matrix, start, True, 5, rng)
    assert alpha > 0
    filled = arb().impute(hide(graph, observed), context())
    right = filled[~observed.dense()][own[~observed.dense()] == 1]
    wrong = filled[~observed.dense()][own[~observed.dense()] == 0]
    assert right.min() > wrong.max()


def test_the_search_finds_a_smooth_minimum():
    """(α - 0.3)² + (β - 0.9)², lowest in the third step; to the precision of its last halving."""
    visits = []

    def error(alpha: float, beta: float) -> np.ndarray:
        visits.append((alpha, beta))
        return (alpha - 0.3) ** 2 + (beta - 0.9) ** 2 + np.array([2.0, 1, 0, 1])

    alpha, beta, steps = halving_search(error)
    assert (alpha, beta) == (pytest.approx(0.3, abs=0.01), pytest.approx(0.9, abs=0.01))
    assert steps == 3
    assert len(visits) == len(set(visits)) < 60
    assert all(0 <= value <= 1 for place in visits for value in place)


def test_the_constants_are_recorded_and_without_a_second_observation_those_of_the_code():
    complete = random_graph()
    facts = arb().signal(hide(complete, random_observed(complete, "rows")), context()).facts
    assert set(facts) == {"alpha", "beta", "steps"}
    single = Observed(complete.features.shape, rows=np.arange(complete.num_nodes) == 3)
    assert arb().signal(hide(complete, single), context()).facts == {"alpha": 0.85, "beta": 0.7, "steps": 30}


@pytest.mark.parametrize(
    ("key", "value"), [("num_iterations", 0), ("alpha", 1), ("beta", -0.1), ("search", 1)]
)
def test_wrong_values_are_refused(key, value):
    with pytest.raises(RequestError, match=rf"method\.{key}="):
        arb(**{key: value})
