"""The largest component keeps exactly its nodes with their links, attributes, labels and parts of the split."""

from __future__ import annotations

import numpy as np
import pytest

from pagnn_bench.config.errors import RequestError
from pagnn_bench.data.component import largest_component
from pagnn_bench.data.graph import Graph, Split, build_graph

# Nodes 0 - 5 and 2 - 4 are pairs, 6 is alone, and 1 - 3 - 7 - 8 is the largest component.
EDGES = np.array([[0, 2, 1, 3, 7], [5, 4, 3, 7, 8]])


def graph(split: Split, known: np.ndarray | None = None) -> Graph:
    labels = np.array([0, 1, 0, 2, 1, 2, 0, 0, 1])
    return build_graph("toy", np.eye(9)[:, ::-1] + np.eye(9), EDGES, labels, split, known)


def test_by_hand():
    known = np.ones((9, 9), dtype=bool)
    known[3, 2] = known[6, 6] = False
    whole = graph(Split(np.array([0, 3]), np.array([1, 5]), np.array([2, 7, 8])), known)
    part = largest_component(whole)
    kept = [1, 3, 7, 8]
    np.testing.assert_array_equal(part.features.toarray(), whole.features.toarray()[kept])
    np.testing.assert_array_equal(
        part.adjacency.toarray(), [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]]
    )
    assert part.labels.tolist() == [1, 2, 0, 1]
    assert part.num_classes == 3
    assert [part.split.train.tolist(), part.split.val.tolist(), part.split.test.tolist()] == [
        [1],
        [0],
        [2, 3],
    ]
    assert not part.known[1, 2]
    assert part.known.sum() == 4 * 9 - 1
    assert part.checksum != whole.checksum


def test_a_part_without_nodes_is_refused():
    with pytest.raises(RequestError, match="the largest component of data=toy has no val nodes"):
        largest_component(graph(Split(np.array([1, 3]), np.array([0]), np.array([8]))))


@pytest.mark.parametrize(("name", "nodes"), [("cora", 2485), ("citeseer", 2120)])
def test_real_graphs(real_root, name, nodes):
    """The counts that papers report."""
    from pagnn_bench.config.sweep import compose_combinations
    from pagnn_bench.data import load_graph

    [config] = compose_combinations([f"data={name}", f"data.root={real_root}"])
    assert largest_component(load_graph(config["data"])).num_nodes == nodes
