"""The largest connected component of a graph, on which much of the literature trains (``protocol.component``)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from pagnn_bench.config.errors import RequestError
from pagnn_bench.data.graph import Graph, Split

COMPONENTS = ("all", "largest")


def largest_nodes(graph: Graph) -> np.ndarray:
    """The nodes of the largest component, int64, in ascending order."""
    _, part = connected_components(graph.adjacency, directed=False)
    return np.flatnonzero(part == np.bincount(part).argmax())


def largest_component(graph: Graph) -> Graph:
    """The graph without the nodes outside its largest component (the first of several equally large ones).

    The numbers of attributes and classes do not change. The split loses the removed nodes.
    """
    kept = largest_nodes(graph)
    place = np.full(graph.num_nodes, -1)
    place[kept] = np.arange(len(kept))
    parts = {}
    for name in ("train", "val", "test"):
        nodes = place[getattr(graph.split, name)]
        parts[name] = nodes[nodes >= 0]
        if not len(parts[name]):
            raise RequestError(
                f"protocol.component=largest: the largest component of data={graph.name} has no {name} nodes."
            )
    return replace(
        graph,
        features=sparse.csr_array(graph.features[kept]),
        adjacency=sparse.csr_array(graph.adjacency[kept][:, kept]),
        labels=graph.labels[kept],
        split=Split(**parts, drawn=graph.split.drawn),
        known=None if graph.known is None else graph.known[kept],
    )
