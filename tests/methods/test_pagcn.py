"""PaGCN's aggregation: by hand, against naive sums, and its limit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pagnn_bench.baselines.pagcn import PaGCN
from pagnn_bench.methods.base import Context
from pagnn_bench.missing import IncompleteGraph, Observed, hide
from pagnn_bench.nn.propagate import symmetric_operator
from tests.conftest import csr, random_graph, random_observed

CONTEXT = Context(seed=0, device=torch.device("cpu"))


def pagcn(input_dropout: str = "post") -> PaGCN:
    return PaGCN(hidden=4, dropout=0.5, input_dropout=input_dropout, bias=True)


def test_path_of_three_by_hand(path3, graph):
    """0 - 1 - 2; attribute 0 is known of nodes 0 and 2, attribute 1 of node 2 only. Degrees with loops 2, 3, 2."""
    observed = Observed((3, 2), cells=np.array([[True, False], [False, False], [True, True]]))
    known = observed.apply(csr([[2, 9], [9, 9], [4, 6]]))
    incomplete = IncompleteGraph(path3, known, observed, graph.labels[:3], 3, graph.split)
    signal = pagcn().signal(incomplete, CONTEXT)
    # A neighbour counts with sqrt(d̃_i / d̃_j), the number of observed neighbours divides.
    up = np.sqrt(3 / 2)
    expected = [[2, 0], [(2 * up + 4 * up) / 2, 6 * up], [4, 6]]
    np.testing.assert_allclose(signal.aggregated.toarray(), expected, rtol=1e-6)
    assert signal.facts["empty_share"] == pytest.approx(1 / 6)


@pytest.mark.parametrize("pattern", ["rows", "cells"])
@pytest.mark.parametrize("rate", [0.0, 0.5, 0.99])
def test_equals_naive_sums(pattern, rate):
    graph = random_graph(seed=6)
    observed = random_observed(graph, pattern, rate)
    result = pagcn().signal(hide(graph, observed), CONTEXT).aggregated.toarray()
    x, m = graph.features.toarray(), observed.dense()
    loops = graph.adjacency.toarray() + np.eye(graph.num_nodes)
    degree = loops.sum(1)
    for i, f in np.ndindex(x.shape):
        seen = [j for j in range(len(x)) if loops[i, j] and m[j, f]]
        top = sum(np.sqrt(degree[i] / degree[j]) * x[j, f] for j in seen)
        assert result[i, f] == pytest.approx(top / len(seen) if seen else 0, abs=1e-5)


@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_everything_observed_is_gcn(graph, pattern):
    signal = pagcn().signal(hide(graph, random_observed(graph, pattern, 0.0)), CONTEXT)
    operator = symmetric_operator(graph.adjacency)
    np.testing.assert_allclose(signal.aggregated.toarray(), (operator @ graph.features).toarray(), atol=1e-6)
    np.testing.assert_array_equal(signal.operator.toarray(), operator.toarray())


@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_the_form_for_dropout_before_aggregation_is_the_same_aggregation(graph, pattern):
    signal = pagcn("pre").signal(hide(graph, random_observed(graph, pattern, 0.6)), CONTEXT)
    weights, features, correction = signal.factors
    np.testing.assert_allclose(
        (weights @ features).toarray() * correction, signal.aggregated.toarray(), atol=1e-6
    )
