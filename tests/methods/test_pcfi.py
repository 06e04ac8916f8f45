"""PCFI: all attributes at once equal the paper's loop over attributes; limits; what cannot be reached."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import shortest_path

from pagnn_bench.baselines.pcfi import PCFI, correlation, hop_distance
from pagnn_bench.config.errors import RequestError
from pagnn_bench.methods.base import Context
from pagnn_bench.missing import Observed, hide
from pagnn_bench.nn.propagate import partial_aggregate
from tests.conftest import random_graph, random_observed

CONTEXT = Context(seed=0, device=torch.device("cpu"))


def pcfi(num_iterations: int = 100, alpha: float = 0.9, beta: float = 1.0) -> PCFI:
    return PCFI(num_iterations, alpha, beta, hidden=4, dropout=0.5, input_dropout="post", bias=True)


def naive_hops(adjacency: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """From all pairs of nodes: the shortest of the paths to any source, ∞ where there is none."""
    return shortest_path(adjacency, unweighted=True)[:, sources].min(axis=1, initial=np.inf)


def naive(graph, observed: Observed, steps: int, alpha: float, beta: float) -> np.ndarray:
    """The formulas of the paper, attribute by attribute with its own matrix w_ij = α^{S_j - S_i + 1}."""
    adjacency, x, m = graph.adjacency.toarray(), graph.features.toarray().astype(np.float64), observed.dense()
    n, d = x.shape
    hops = np.stack([naive_hops(adjacency, m[:, f]) for f in range(d)], axis=1)
    out = np.where(m, x, 0)
    for f in range(d):
        weights = np.zeros((n, n))
        for i, j in zip(*np.nonzero(adjacency + np.eye(n))):
            if np.isfinite(hops[i, f]):
                weights[i, j] = alpha ** (hops[j, f] - hops[i, f] + 1)
        total = weights.sum(1, keepdims=True)
        weights = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
        for _ in range(steps):
            out[:, f] = np.where(m[:, f], x[:, f], weights @ out[:, f])
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.nan_to_num(np.corrcoef(out.T))
    np.fill_diagonal(r, 0)
    c = np.where(np.isinf(hops), 0, alpha**hops)
    mean = out.mean(0)
    result = out.copy()
    for i, f in np.ndindex(n, d):
        others = sum(c[i, g] * (out[i, g] - mean[g]) * r[g, f] for g in range(d))
        result[i, f] += beta * (1 - c[i, f]) * others
    return result


@pytest.mark.parametrize("pattern", ["rows", "cells"])
@pytest.mark.parametrize("rate", [0.5, 0.99])
@pytest.mark.parametrize(("alpha", "beta"), [(0.9, 1.0), (0.3, 0.0), (0.99, 0.5)])
def test_equals_the_loop_over_attributes(pattern, rate, alpha, beta):
    graph = random_graph(seed=4)
    observed = random_observed(graph, pattern, rate)
    if observed.rows is not None:
        observed.rows[:2] = True  # at rate 0.99 a mask may hide everything
    filled = pcfi(20, alpha, beta).impute(hide(graph, observed), CONTEXT)
    np.testing.assert_allclose(filled, naive(graph, observed, 20, alpha, beta), atol=2e-5)


@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_one_step_without_confidence_in_others_is_pagnn_m(graph, pattern):
    observed = random_observed(graph, pattern, 0.7)
    incomplete = hide(graph, observed)
    filled = pcfi(1, alpha=1e-6, beta=0.0).impute(incomplete, CONTEXT)
    ratio = partial_aggregate(graph.adjacency, incomplete.features, observed, "m").values.toarray()
    hidden = ~observed.dense()
    np.testing.assert_allclose(filled[hidden], ratio[hidden], atol=1e-5)


@pytest.mark.parametrize("pattern", ["rows", "cells"])
@pytest.mark.parametrize("rate", [0.0, 0.6])
def test_observed_entries_stay_exactly(graph, pattern, rate):
    observed = random_observed(graph, pattern, rate)
    filled = pcfi().impute(hide(graph, observed), CONTEXT)
    np.testing.assert_array_equal(filled[observed.dense()], graph.features.toarray()[observed.dense()])
    assert np.isfinite(filled).all()


@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_hops_to_the_nearest_observation(graph, pattern):
    observed = random_observed(graph, pattern, 0.9)
    hops = hop_distance(graph.adjacency, observed)
    assert hops.shape[1] == (1 if pattern == "rows" else graph.num_features)
    for f in range(hops.shape[1]):
        expected = naive_hops(graph.adjacency.toarray(), observed.dense()[:, f])
        np.testing.assert_array_equal(hops[:, f], expected)


def test_what_no_observation_reaches_stays_zero_and_distrusted():
    """The last node is isolated; hidden, it has no confidence and nothing to say about its attributes."""
    graph = random_graph()
    rows = np.arange(graph.num_nodes) < graph.num_nodes - 1
    observed = Observed(graph.features.shape, rows=rows)
    assert np.isinf(hop_distance(graph.adjacency, observed)[-1])
    assert not pcfi().impute(hide(graph, observed), CONTEXT)[-1].any()


def test_correlation_of_constant_columns_is_zero():
    x = torch.rand(50, 4, generator=torch.Generator().manual_seed(0))
    x[:, 1] = 0.1 * (1 + 1e-7 * torch.randn(50, generator=torch.Generator().manual_seed(1)))  # up to rounding
    x[:, 2] = 0
    r = correlation(x).numpy()
    assert r[0, 3] == pytest.approx(np.corrcoef(x[:, 0], x[:, 3])[0, 1], abs=1e-6)
    assert not r[1:3].any()
    assert not np.diag(r).any()


@pytest.mark.parametrize(("key", "value"), [("num_iterations", 0), ("alpha", 0), ("alpha", 1), ("beta", -1)])
def test_wrong_values_are_refused(key, value):
    with pytest.raises(RequestError, match=rf"method\.{key}="):
        pcfi(**{key: value})
