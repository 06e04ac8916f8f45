"""Gaps of the graph itself: they join what is drawn, and nothing that stands there matters to anybody."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from pagnn_bench.config.errors import RequestError
from pagnn_bench.data.graph import Graph, Split, build_graph
from pagnn_bench.missing import Observed, check_missing, draw_observed, hide, observe, standardise
from pagnn_bench.missing.natural import scored
from tests.conftest import random_graph

NATURAL = {"pattern": "natural", "further": "cells", "exact": False}
ROWS = {"pattern": "rows", "exact": False}
CELLS = {"pattern": "cells", "exact": False}


def with_gaps(known: np.ndarray | None = None) -> Graph:
    """The random graph of 40 nodes and 12 attributes; 30 % of them are missing."""
    graph = random_graph()
    if known is None:
        known = np.random.default_rng(5).random(graph.features.shape) >= 0.3
    return dataclasses.replace(
        graph, features=Observed(known.shape, cells=known).apply(graph.features), known=known
    )


def test_without_a_rate_the_mask_is_that_of_the_graph():
    graph = with_gaps()
    np.testing.assert_array_equal(observe(graph, NATURAL, 0.0, seed=1).dense(), graph.known)


@pytest.mark.parametrize("missing", [NATURAL, CELLS, ROWS, NATURAL | {"further": "rows"}])
def test_what_is_drawn_comes_on_top(missing):
    graph = with_gaps()
    drawn = draw_observed(missing, 0.4, graph.features.shape, seed=1).dense()
    np.testing.assert_array_equal(observe(graph, missing, 0.4, seed=1).dense(), graph.known & drawn)


def test_a_complete_graph_is_only_drawn_on():
    drawn = draw_observed(CELLS, 0.4, (40, 12), seed=1).dense()
    np.testing.assert_array_equal(observe(random_graph(), NATURAL, 0.4, seed=1).dense(), drawn)


def test_whole_rows_stay_a_mask_of_rows():
    rows = np.arange(40) % 3 > 0
    graph = with_gaps(np.repeat(rows[:, None], 12, axis=1))
    for missing, rate in ((NATURAL, 0.0), (ROWS, 0.4), (NATURAL | {"further": "rows"}, 0.4)):
        mask = observe(graph, missing, rate, seed=1)
        assert mask.rows is not None
        assert not mask.rows[~rows].any()
    assert observe(graph, NATURAL, 0.4, seed=1).rows is None
    assert observe(with_gaps(), NATURAL, 0.0, seed=1).rows is None


def test_one_known_entry_always_stays():
    known = np.zeros((40, 12), dtype=bool)
    known[3, 4] = known[5, 6] = True
    for seed in range(20):
        mask = observe(with_gaps(known), NATURAL, 0.99, seed).dense()
        assert mask.any()
        assert not mask[~known].any()


def test_errors_are_counted_where_the_truth_is_known():
    graph = with_gaps()
    observed = observe(graph, CELLS, 0.4, seed=1)
    np.testing.assert_array_equal(~scored(graph, observed).dense(), graph.known & ~observed.dense())
    assert scored(random_graph(), observed) is observed


@pytest.mark.parametrize("changed", [{"further": "biased"}, {"exact": 1}, {"low": 0.1}])
def test_nonsense_is_refused(changed):
    with pytest.raises(RequestError):
        check_missing(NATURAL | changed, 0.0)


def tiny() -> Graph:
    """Nodes 0 to 2 train. Columns: wild, a word, constant in training, unseen in training, one with a gap."""
    features = [
        [1e6, 1, 7, np.nan, 2],
        [3e6, 0, 7, np.nan, 4],
        [5e6, 1, 7, np.nan, np.nan],
        [9e6, 1, 8, 5, 6],
        [-1e6, 0, 7, 6, 3],
    ]
    split = Split(np.arange(3), np.array([3]), np.array([4]))
    return build_graph(
        "tiny", np.array(features), np.array([[0, 1, 2, 3], [1, 2, 3, 4]]), np.array([0, 1, 0, 1, 1]), split
    )


def test_standardising_by_hand():
    """The wild entry 5e6 of node 2 is hidden: mean 2e6, deviation 1e6 from nodes 0 and 1."""
    graph = tiny()
    cells = graph.known.copy()
    cells[2, 0] = False
    scaled = standardise(graph, Observed(cells.shape, cells=cells))
    expected = [[-1, 1, 0, 0, -1], [1, 0, 0, 0, 1], [3, 1, 0, 0, 0], [7, 1, 1, 0, 3], [-3, 0, 0, 0, 0]]
    np.testing.assert_allclose(scaled.features.toarray(), expected, atol=1e-6)
    assert hide(scaled, Observed(cells.shape, cells=cells)).features.toarray()[2, 0] == 0


def test_neither_hidden_entries_nor_other_nodes_decide_the_scale():
    graph = with_gaps()
    observed = observe(graph, CELLS, 0.4, seed=1)
    expected = hide(standardise(graph, observed), observed).features.toarray()
    senseless = np.where(observed.dense(), graph.features.toarray(), np.float32(1e9))
    spoiled = dataclasses.replace(graph, features=sp.csr_array(senseless))
    np.testing.assert_array_equal(hide(standardise(spoiled, observed), observed).features.toarray(), expected)
    others = graph.features.toarray()
    others[len(graph.split.train) :] += 10
    moved = hide(standardise(dataclasses.replace(graph, features=sp.csr_array(others)), observed), observed)
    np.testing.assert_array_equal(moved.features.toarray()[graph.split.train], expected[graph.split.train])


def test_the_scale_of_all_observed_entries_by_hand():
    """Of column 0 nodes 1 (3e6), 3 (9e6) and 4 are seen: mean 11e6/3; column 1 shows 0 and 1 only and stays."""
    graph = tiny()
    cells = graph.known.copy()
    cells[[0, 2], 0] = False
    scaled = standardise(graph, Observed(cells.shape, cells=cells), by_all=True).features.toarray()
    seen = np.array([3e6, 9e6, -1e6])
    np.testing.assert_allclose(scaled[[1, 3, 4], 0], (seen - seen.mean()) / seen.std(), rtol=1e-5)
    np.testing.assert_array_equal(scaled[:, 1], [1, 0, 1, 1, 0])


def test_hidden_entries_do_not_decide_the_scale_of_all_either():
    graph = with_gaps()
    observed = observe(graph, CELLS, 0.4, seed=1)
    senseless = np.where(observed.dense(), graph.features.toarray(), np.float32(1e9))
    spoiled = dataclasses.replace(graph, features=sp.csr_array(senseless))
    first, second = (hide(standardise(each, observed, by_all=True), observed) for each in (graph, spoiled))
    np.testing.assert_array_equal(first.features.toarray(), second.features.toarray())
