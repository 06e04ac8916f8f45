"""FISF: by hand on a path, all attributes at once equal to a loop over attributes, where and what is injected."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import shortest_path

from pagnn_bench.baselines.fisf import FISF, draw_missing, draw_values
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import seed_for
from pagnn_bench.data.graph import Split, build_graph
from pagnn_bench.methods.base import Context
from pagnn_bench.missing import Observed, hide
from tests.conftest import random_graph, random_observed

CONTEXT = Context(seed=0, device=torch.device("cpu"))


def fisf(num_iterations: int = 100, alpha: float = 0.9, beta: float = 0.9, gamma: float = 0.7) -> FISF:
    return FISF(num_iterations, alpha, beta, gamma, hidden=4, dropout=0.5, input_dropout="post", bias=True)


def test_a_path_by_hand(monkeypatch):
    """0 - 1 - 2 - 3, x_0 = 1, u = 0.5 at node 3. S = (0, 1, 2, 3), S' = (3, 2, 1, 0), so c = (β³, αβ², α²β, α³).

    In the limit x_1 = (c_0 x_0 + c_2 x_2)/(c_0 + c_2) and x_2 = (c_1 x_1 + c_3 u)/(c_1 + c_3): a node's own weight
    drops out. With a = β²/(β² + α²): x_1 = a + (1 - a) x_2 and x_2 = a x_1 + (1 - a) u.
    """
    rows = np.array([True, False, False, False])
    one = [np.array([k]) for k in range(3)]
    graph = build_graph(
        "path", np.ones((4, 2)), np.array([[0, 1, 2], [1, 2, 3]]), np.array([0, 1, 0, 1]), Split(*one)
    )
    graph = hide(graph, Observed((4, 2), rows=rows))
    monkeypatch.setattr("pagnn_bench.baselines.fisf.draw_missing", lambda known, rng: np.array([3]))
    monkeypatch.setattr("pagnn_bench.baselines.fisf.draw_values", lambda *_: np.array([0.5]))
    filled = fisf(2000, alpha=0.5, beta=0.8, gamma=0.5).impute(graph, CONTEXT)
    a = 0.8**2 / (0.8**2 + 0.5**2)
    second = (a * a + (1 - a) * 0.5) / (1 - a * (1 - a))
    expected = [1, a + (1 - a) * second, second, 0.5]
    np.testing.assert_allclose(filled[:, 0], expected, rtol=1e-5)  # of two equal columns the first is chosen
    np.testing.assert_allclose(filled[:, 1], 1, rtol=1e-5)


def naive(graph, method: FISF) -> np.ndarray:
    """Attribute by attribute, with row-normalised matrices w_ij = c_j / Σ_l c_l."""
    adjacency = graph.adjacency.toarray()
    loops, distance = adjacency + np.eye(len(adjacency)), shortest_path(adjacency, unweighted=True)
    known, values = graph.observed.dense(), graph.features.toarray().astype(np.float64)

    def diffused(fixed, start, c):
        total = loops @ c
        weights = np.divide(loops * c, total[:, None], out=np.zeros_like(loops), where=total[:, None] > 0)
        x = start
        for _ in range(method.num_iterations):
            x = np.where(fixed, start, weights @ x)
        return x

    hops = [distance[:, known[:, f]].min(axis=1, initial=np.inf) for f in range(known.shape[1])]
    trust = [np.where(np.isinf(s), 0, method.alpha**s) for s in hops]
    x = np.stack([diffused(k, v, c) for k, v, c in zip(known.T, values.T, trust)], axis=1)
    order = sorted(range(known.shape[1]), key=lambda f: np.float32(x[:, f]).var(dtype=np.float64))
    flat = np.array(
        sorted(f for f in order[: int(method.gamma * len(order))] if not known[:, f].all()), dtype=int
    )
    rng = np.random.default_rng(seed_for("injection", seed=CONTEXT.seed))
    nodes = draw_missing(known[:, flat], rng)
    drawn = draw_values(graph, flat, rng)
    for f, node, value in zip(flat, nodes, drawn):
        start, fixed, far = values[:, f].copy(), known[:, f].copy(), distance[:, node]
        start[node], fixed[node] = value, True
        x[:, f] = diffused(fixed, start, trust[f] * np.where(np.isinf(far), 1, method.beta**far))
    return x


@pytest.mark.parametrize("pattern", ["rows", "cells"])
@pytest.mark.parametrize("rate", [0.5, 0.9])
def test_equals_the_loop_over_attributes(pattern, rate):
    complete = random_graph(seed=4)
    graph = hide(complete, random_observed(complete, pattern, rate))
    method = fisf(20, alpha=0.8, beta=0.6)
    np.testing.assert_allclose(method.impute(graph, CONTEXT), naive(graph, method), atol=2e-5)


def test_draws_are_the_mask_s_own_and_injected_where_nothing_is_known(graph):
    incomplete = hide(graph, random_observed(graph, "rows", 0.5))
    first, again, other = (
        fisf().impute(incomplete, dataclasses.replace(CONTEXT, seed=seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)
    plain = fisf(gamma=0.0).impute(incomplete, CONTEXT)
    assert (first != plain).any(axis=0).sum() == int(0.7 * graph.num_features)


def test_a_missing_node_of_every_column_is_drawn_uniformly():
    known = np.tile(np.array([True, False, False, True, False])[:, None], 30000)
    drawn = draw_missing(known, np.random.default_rng(0))
    np.testing.assert_allclose(
        np.bincount(drawn, minlength=5) / 30000, [0, 1 / 3, 1 / 3, 0, 1 / 3], atol=0.01
    )


def test_values_lie_in_the_unit_interval_or_in_the_observed_range(graph):
    observed, columns = random_observed(graph, "cells", 0.5), np.arange(graph.num_features)
    drawn = draw_values(hide(graph, observed), columns, np.random.default_rng(0))
    assert ((drawn >= 0) & (drawn < 1)).all()
    known = observed.dense()
    wide = np.where(np.arange(graph.num_nodes)[:, None] % 2, 100.0 * columns, 50.0 * columns - 7)
    scaled = dataclasses.replace(graph, features=type(graph.features)(wide.astype(np.float32)))
    drawn = draw_values(hide(scaled, observed), columns, np.random.default_rng(0))
    assert (drawn >= wide.min(axis=0, where=known, initial=np.inf)).all()
    assert (drawn <= wide.max(axis=0, where=known, initial=-np.inf)).all()


@pytest.mark.parametrize(
    ("key", "value"), [("num_iterations", 0), ("alpha", 1), ("beta", -0.1), ("gamma", 1)]
)
def test_wrong_values_are_refused(key, value):
    with pytest.raises(RequestError, match=rf"method\.{key}="):
        fisf(**{key: value})
