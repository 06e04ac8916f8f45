"""The two partial aggregations: by hand, against naive loops, and their limits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from pagnn_bench.missing import Observed
from pagnn_bench.nn import propagate
from pagnn_bench.nn.propagate import (
    mean_operator,
    partial_aggregate,
    partial_correction,
    partial_operator,
    symmetric_operator,
)
from tests.conftest import csr, random_graph, random_observed


def naive(graph, observed: Observed, norm: str) -> np.ndarray:
    """Equations 6 and 10 of the paper, sum by sum; no matrix products, no shortcuts."""
    adjacency, x, m = graph.adjacency.toarray(), graph.features.toarray(), observed.dense()
    n, d = x.shape
    loops = adjacency + np.eye(n)
    degree = loops.sum(1)
    weight = loops if norm == "m" else loops / np.sqrt(np.outer(degree, degree))
    out = np.zeros((n, d))
    for i in range(n):
        for f in range(d):
            top = sum(weight[i, j] * x[j, f] for j in range(n) if m[j, f])
            bottom = sum(weight[i, j] for j in range(n) if m[j, f])
            if bottom > 0:
                out[i, f] = top / bottom * (1 if norm == "m" else weight[i].sum())
    return out


def test_path_of_three_by_hand(path3):
    """0 - 1 - 2; attribute 0 is known of nodes 0 and 2, attribute 1 of node 2 only."""
    observed = Observed((3, 2), cells=np.array([[True, False], [False, False], [True, True]]))
    features = observed.apply(csr([[2, 9], [9, 9], [4, 6]]))

    mean = partial_aggregate(path3, features, observed, "m")
    # Node 0 sees itself (2); node 1 sees 0 and 2, (2 + 4) / 2; node 2 sees itself. Attribute 1: nobody next to node 0.
    np.testing.assert_allclose(mean.values.toarray(), [[2, 0], [3, 6], [4, 6]], rtol=1e-6)
    assert mean.empty_share == pytest.approx(1 / 6)

    symmetric = partial_aggregate(path3, features, observed, "n")
    # Degrees with loops 2, 3, 2: Â00 = Â22 = 1/2, Â11 = 1/3, Â01 = Â12 = 1/sqrt 6. A single observed neighbour comes
    # out unchanged but for d̂; node 1 weighs 0 and 2 equally.
    outer, inner = 1 / 2 + 1 / np.sqrt(6), 1 / 3 + 2 / np.sqrt(6)
    expected = [[2 * outer, 0], [3 * inner, 6 * inner], [4 * outer, 6 * outer]]
    np.testing.assert_allclose(symmetric.values.toarray(), expected, rtol=1e-6)


@pytest.mark.parametrize("norm", ["m", "n"])
@pytest.mark.parametrize("pattern", ["rows", "cells"])
@pytest.mark.parametrize("rate", [0.0, 0.3, 0.9])
def test_equals_naive_sums(norm, pattern, rate):
    graph = random_graph(seed=3)
    observed = random_observed(graph, pattern, rate)
    result = partial_aggregate(graph.adjacency, observed.apply(graph.features), observed, norm)
    np.testing.assert_allclose(result.values.toarray(), naive(graph, observed, norm), atol=1e-6)


@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_everything_observed_is_the_ordinary_convolution(graph, pattern):
    observed = random_observed(graph, pattern, rate=0.0)
    for norm, operator in (("m", mean_operator), ("n", symmetric_operator)):
        result = partial_aggregate(graph.adjacency, graph.features, observed, norm)
        np.testing.assert_allclose(
            result.values.toarray(), (operator(graph.adjacency) @ graph.features).toarray(), atol=1e-6
        )
        assert result.empty_share == 0


@pytest.mark.parametrize("norm", ["m", "n"])
@pytest.mark.parametrize("pattern", ["rows", "cells"])
@pytest.mark.parametrize("value", [1e9, np.nan])
def test_hidden_values_do_not_matter(graph, norm, pattern, value):
    observed = random_observed(graph, pattern)
    spoiled = np.where(observed.dense(), graph.features.toarray(), np.float32(value))
    clean = partial_aggregate(graph.adjacency, observed.apply(graph.features), observed, norm)
    other = partial_aggregate(graph.adjacency, observed.apply(sp.csr_array(spoiled)), observed, norm)
    np.testing.assert_array_equal(clean.values.toarray(), other.values.toarray())


def test_type_1_and_type_2_agree_on_the_same_mask(graph):
    rows = random_observed(graph, "rows", 0.7)
    cells = Observed(rows.shape, cells=rows.dense().copy())
    for norm in ("m", "n"):
        one = partial_aggregate(graph.adjacency, rows.apply(graph.features), rows, norm)
        two = partial_aggregate(graph.adjacency, cells.apply(graph.features), cells, norm)
        np.testing.assert_allclose(one.values.toarray(), two.values.toarray(), rtol=1e-6)
        assert one.empty_share == pytest.approx(two.empty_share)
        np.testing.assert_array_equal(one.reached, two.reached)


def test_isolated_and_blind_nodes(graph):
    """The last node has no neighbours: hidden it is blind, observed it sees just itself."""
    last = graph.num_nodes - 1
    rows = np.ones(graph.num_nodes, dtype=bool)
    rows[last] = False
    hidden = Observed(graph.features.shape, rows=rows)
    result = partial_aggregate(graph.adjacency, hidden.apply(graph.features), hidden, "n")
    assert not result.reached[last]
    assert result.reached[:last].all()
    assert result.empty_share == pytest.approx(1 / graph.num_nodes)
    assert np.isfinite(result.values.data).all()
    assert result.values[[last]].nnz == 0

    everything = random_observed(graph, "rows", 0.0)
    result = partial_aggregate(graph.adjacency, graph.features, everything, "m")
    np.testing.assert_allclose(result.values[[last]].toarray(), graph.features[[last]].toarray())


def test_node_permutation(graph):
    """Renaming the nodes renames the result."""
    order = np.random.default_rng(1).permutation(graph.num_nodes)
    observed = random_observed(graph, "cells")
    moved = Observed(observed.shape, cells=observed.dense()[order])
    plain = partial_aggregate(graph.adjacency, observed.apply(graph.features), observed, "n").values.toarray()
    adjacency = sp.csr_array(graph.adjacency[order][:, order])
    permuted = partial_aggregate(adjacency, moved.apply(sp.csr_array(graph.features[order])), moved, "n")
    np.testing.assert_allclose(permuted.values.toarray(), plain[order], rtol=1e-6)


def test_column_blocks_do_not_change_the_result(graph, monkeypatch):
    observed = random_observed(graph, "cells")
    whole = partial_aggregate(graph.adjacency, observed.apply(graph.features), observed, "n")
    blocks = Observed.column_blocks
    monkeypatch.setattr(propagate.Observed, "column_blocks", lambda self: blocks(self, 3 * self.shape[0]))
    pieces = partial_aggregate(graph.adjacency, observed.apply(graph.features), observed, "n")
    np.testing.assert_array_equal(whole.values.toarray(), pieces.values.toarray())
    assert whole.empty_share == pieces.empty_share


@pytest.mark.parametrize("norm", ["m", "n"])
@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_correction_and_operator_factor_the_aggregation(graph, norm, pattern):
    """G = (weights X°) ⊙ C, and for whole rows G = P X°."""
    observed = random_observed(graph, pattern, 0.8)
    known = observed.apply(graph.features)
    expected = partial_aggregate(graph.adjacency, known, observed, norm).values.toarray()
    weights, _ = propagate.aggregation(graph.adjacency, norm)
    correction = partial_correction(graph.adjacency, observed, norm)
    np.testing.assert_allclose((weights @ known).toarray() * correction, expected, atol=1e-6)
    if observed.rows is not None:
        operator = partial_operator(graph.adjacency, observed.rows, norm)
        np.testing.assert_allclose((operator @ known).toarray(), expected, atol=1e-6)
