"""build_graph brings any edge list into one form and refuses arrays that contradict each other."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from pagnn_bench.config.errors import RequestError
from pagnn_bench.data.graph import Graph, Split, build_graph

FEATURES = np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0], [1, 1, 1]])
EDGES = np.array([[0, 1, 1, 2], [1, 2, 2, 2]])
LABELS = np.array([0, 1, 1, -1])


def split(train=(0,), val=(1,), test=(2,)) -> Split:
    return Split(np.array(train), np.array(val), np.array(test))


def toy(features=FEATURES, edges=EDGES, labels=LABELS, parts=None) -> Graph:
    return build_graph("toy", features, edges, labels, parts or split())


def test_counts_and_types():
    graph = toy()
    assert (graph.num_nodes, graph.num_features, graph.num_classes, graph.num_edges) == (4, 3, 2, 2)
    assert graph.features.dtype == graph.adjacency.dtype == np.float32
    assert graph.labels.dtype == graph.split.train.dtype == np.int64
    np.testing.assert_array_equal(graph.features.toarray(), FEATURES)


def test_duplicates_directions_and_self_loops_vanish():
    expected = np.zeros((4, 4))
    expected[[0, 1, 1, 2], [1, 0, 2, 1]] = 1
    np.testing.assert_array_equal(toy().adjacency.toarray(), expected)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=40))
def test_adjacency_is_simple_for_every_edge_list(pairs):
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    labels = np.array([0, 1, 0, 1, 0, 1, 0])
    adjacency = build_graph("toy", np.eye(7), edges, labels, split()).adjacency
    expected = np.zeros((7, 7))
    for a, b in pairs:
        if a != b:
            expected[a, b] = expected[b, a] = 1
    np.testing.assert_array_equal(adjacency.toarray(), expected)
    assert adjacency.has_canonical_format


def test_checksum_does_not_depend_on_how_the_arrays_are_given():
    shuffled = sparse.coo_array(FEATURES)
    order = [5, 2, 0, 4, 1, 3]
    # Other order, other type, one stored zero.
    messy = sparse.coo_array(
        (np.append(shuffled.data[order].astype(float), 0), [np.append(c[order], 1) for c in shuffled.coords]),
        shape=(4, 3),
    )
    other = toy(messy, EDGES[::-1, ::-1].astype(np.int32), LABELS.astype(np.int16))
    assert other.checksum == toy().checksum


@pytest.mark.parametrize(
    "changed",
    [
        {"features": FEATURES + (FEATURES == 3)},
        {"features": np.hstack([FEATURES, np.zeros((4, 1))])},
        {"edges": np.array([[0], [1]])},
        {"labels": np.array([0, 1, 0, -1])},
        {"labels": np.array([0, 1, 2, -1])},
        {"parts": split(train=[1], val=[0])},
    ],
)
def test_checksum_sees_every_change(changed):
    assert toy(**changed).checksum != toy().checksum


def test_checksum_ignores_the_name():
    assert dataclasses.replace(toy(), name="other").checksum == toy().checksum


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"features": np.where(FEATURES > 0, np.inf, 0)}, "finite"),
        ({"features": np.full(FEATURES.shape, np.nan)}, "all attributes are missing"),
        ({"features": np.full((4, 3), 1e300)}, "finite"),
        ({"features": np.empty((0, 3))}, "empty"),
        ({"features": FEATURES[:3]}, "3 rows of features do not match 4 labels"),
        ({"edges": EDGES + 0.5}, "integer node indices"),
        ({"edges": np.zeros((3, 4), dtype=int)}, r"shape \[3, 4\]"),
        ({"edges": EDGES + 2}, "nodes 2 to 4, but the nodes are 0 to 3"),
        ({"edges": EDGES - 1}, "nodes -1 to 1"),
        ({"labels": LABELS.astype(float)}, "float64"),
        ({"labels": LABELS - 1}, "counted from 0"),
        ({"labels": LABELS * 1000}, "counted from 0"),
        ({"labels": np.full(4, -1)}, "counted from 0"),
        ({"parts": split(val=[0])}, "disjoint"),
        ({"parts": split(train=[0, 0])}, "disjoint"),
        ({"parts": split(test=[4])}, "test nodes must be indices from 0 to 3"),
        ({"parts": split(test=[3])}, "test nodes have no label"),
        ({"parts": split(val=[])}, "val nodes must be a non-empty"),
    ],
)
def test_contradictions_are_refused_in_one_sentence(changed, words):
    with pytest.raises(RequestError, match=words) as caught:
        toy(**changed)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("data=toy: ")
