"""Filling with the neighbours' mean: by hand, and against sums over neighbours."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pagnn_bench.baselines.neighbor_mean import NeighborMean
from pagnn_bench.methods.base import Context
from pagnn_bench.missing import IncompleteGraph, Observed, hide
from tests.conftest import csr, random_graph, random_observed

CONTEXT = Context(seed=0, device=torch.device("cpu"))
METHOD = NeighborMean(hidden=4, dropout=0.5, input_dropout="post", bias=True)


def test_path_of_three_by_hand(path3, graph):
    """0 - 1 - 2; attribute 0 is known of nodes 0 and 2, attribute 1 of node 2 only."""
    observed = Observed((3, 2), cells=np.array([[True, False], [False, False], [True, True]]))
    known = observed.apply(csr([[2, 9], [9, 9], [4, 6]]))
    incomplete = IncompleteGraph(path3, known, observed, graph.labels[:3], 3, graph.split)
    np.testing.assert_allclose(METHOD.impute(incomplete, CONTEXT).toarray(), [[2, 0], [3, 6], [4, 6]])


@pytest.mark.parametrize("pattern", ["rows", "cells"])
@pytest.mark.parametrize("rate", [0.0, 0.5, 0.99])
def test_equals_naive_means(pattern, rate):
    graph = random_graph(seed=5)
    observed = random_observed(graph, pattern, rate)
    filled = METHOD.impute(hide(graph, observed), CONTEXT).toarray()
    x, m, adjacency = graph.features.toarray(), observed.dense(), graph.adjacency.toarray()
    for i, f in np.ndindex(x.shape):
        if m[i, f]:
            assert filled[i, f] == x[i, f]
        else:
            seen = x[(adjacency[i] > 0) & m[:, f], f]
            assert filled[i, f] == pytest.approx(seen.mean() if len(seen) else 0, abs=1e-6)
