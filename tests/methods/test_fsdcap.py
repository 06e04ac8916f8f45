"""FSD-CAP: rounds and class means by hand, all attributes at once equal to the authors' matrices, labels used."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from pagnn_bench.baselines.fsdcap import class_aware, subgraph_diffusion
from pagnn_bench.config.errors import RequestError
from pagnn_bench.data.graph import Split, build_graph
from pagnn_bench.methods import build_method
from pagnn_bench.missing import IncompleteGraph, Observed, hide
from tests.conftest import random_graph, random_observed
from tests.methods.learners import context, shipped

CPU = torch.device("cpu")
TARGET = "pagnn_bench.baselines.fsdcap.FSDCAP"


def method(**changes):
    return build_method({"_target_": TARGET, "name": "fsdcap", **shipped("fsdcap", changes)})


def chain(nodes: int, known: int, features: np.ndarray) -> IncompleteGraph:
    """0 - 1 - 2 - ...; the first ``known`` nodes are observed."""
    one = [np.array([k]) for k in range(3)]
    path = np.stack((np.arange(nodes - 1), np.arange(1, nodes)))
    graph = build_graph("chain", features, path, np.arange(nodes) % 2, Split(*one))
    return hide(graph, Observed(features.shape, rows=np.arange(nodes) < known))


def test_the_first_rounds_by_hand():
    """0 - 1 - 2, x_0 = 1, one step a round. γ = 2, so weights are 1 / degree. S = (0, 1, 2): three rounds.

    Round 1, nodes 0 and 1 of degree 2: x_1 = 1/2 + λ 0. P = (1, 1/2) / √1.25.
    Round 2, all, degrees 2, 3, 2: row 1 has weights (3, 2, 3) / 8: x_1 = 3/8 + 2/8 · 1/2 + λ P_1 = 1/2 + λ P_1,
    row 2 has (2, 3) / 5: x_2 = 2/5 · 1/2. Round 3 the same with P of round 2.
    """
    retain = 0.1
    found = subgraph_diffusion(chain(3, 1, np.ones((3, 1))), 1, 2.0, retain, CPU)
    p = 0.5 / 1.25**0.5
    x1, x2 = 0.5 + retain * p, 0.2
    norm = (1 + x1**2 + x2**2) ** 0.5
    last = [1, 3 / 8 + x1 / 4 + 3 / 8 * x2 + retain * x1 / norm, 0.4 * x1 + 0.6 * x2 + retain * x2 / norm]
    np.testing.assert_allclose(found.ravel(), last, rtol=1e-6)


def naive(graph: IncompleteGraph, steps: int, gamma: float, retain: float) -> np.ndarray:
    """Sets of nodes grown hop by hop, dense operators to the power γ; the whole matrix or column by column."""
    adjacency = graph.adjacency.toarray().astype(np.float64)
    known, values = graph.observed.dense(), graph.features.toarray().astype(np.float64)
    whole = graph.observed.rows is not None
    x, before = values.copy(), values.copy()
    for columns in [slice(None)] if whole else [[f] for f in range(values.shape[1])]:
        nodes = known[:, 0] if whole else known[:, columns[0]]
        hop, outside = 0, None
        while outside != (~nodes).sum():
            outside, hop = (~nodes).sum(), hop + 1
            for _ in range(hop):
                nodes = nodes | (adjacency @ nodes > 0)
            inner = (adjacency + np.eye(len(nodes))) * nodes * nodes[:, None]
            root = np.sqrt(np.maximum(inner.sum(axis=1), 1))
            power = np.where(inner > 0, (inner / root / root[:, None]) ** gamma, 0)
            power /= np.maximum(power.sum(axis=1, keepdims=True), 1e-300)
            for _ in range(steps):
                x[:, columns] = power @ x[:, columns] + retain * nodes[:, None] * before[:, columns]
                x[:, columns] = np.where(known[:, columns], values[:, columns], x[:, columns])
            part = x[nodes][:, columns]
            before[np.ix_(nodes, np.arange(values.shape[1])[columns])] = part / max(
                np.linalg.norm(part), 1e-30
            )
    return x


@pytest.mark.parametrize("pattern", ["rows", "cells"])
@pytest.mark.parametrize(("rate", "gamma"), [(0.5, 1.0), (0.9, 1.7)])
def test_equals_the_loop_over_subgraphs(pattern, rate, gamma):
    complete = random_graph(seed=5)
    graph = hide(complete, random_observed(complete, pattern, rate))
    found = subgraph_diffusion(graph, 15, gamma, 0.2, CPU)
    np.testing.assert_allclose(found, naive(graph, 15, gamma, 0.2), atol=2e-5)


def test_blocks_of_columns_do_not_change_the_result(graph, monkeypatch):
    incomplete = hide(graph, random_observed(graph, "cells", 0.8))
    whole = subgraph_diffusion(incomplete, 10, 1.0, 0.1, CPU)
    monkeypatch.setattr("pagnn_bench.baselines.fsdcap.BLOCK_ENTRIES", 2 * graph.num_nodes)
    np.testing.assert_array_equal(subgraph_diffusion(incomplete, 10, 1.0, 0.1, CPU), whole)


def test_class_means_by_hand():
    """0 - 1 - 2 - 3 with ŷ = 0, 0, 1, 1. Ends agree with their neighbour, q = 1; in the middle two of three do."""
    graph = chain(4, 1, np.array([[1.0], [2.0], [5.0], [7.0]]))
    filled = np.array([[1.0], [2.0], [5.0], [7.0]])
    q = 1 - (np.log(3) - 2 / 3 * np.log(2)) / np.log(3)
    low, high = (1 + 2 * q) / (1 + q), (7 + 5 * q) / (1 + q)
    found = class_aware(graph, filled, np.array([0, 0, 1, 1]), np.array([1.0, 0.5, 0.5, 0.0]))
    np.testing.assert_allclose(found.ravel(), [1, 1 + low / 2, 2.5 + high / 2, high], rtol=1e-6)


def test_a_node_alone_counts_in_full_and_an_empty_class_is_harmless(graph):
    """The last node has no neighbours; with a class of its own, its mean is the node itself."""
    labels = np.zeros(graph.num_nodes, dtype=int)
    labels[-1] = 1
    filled = np.arange(graph.num_nodes, dtype=float)[:, None]
    incomplete = hide(graph, random_observed(graph, "rows"))
    found = class_aware(incomplete, filled, labels, np.zeros(graph.num_nodes))
    np.testing.assert_allclose(found[:-1], filled[:-1].mean(), rtol=1e-6)
    assert found[-1] == filled[-1]


def test_only_labels_of_training_nodes_are_used():
    """Even if others were there."""
    complete = random_graph(seed=2)
    graph = hide(complete, random_observed(complete, "rows", 0.5))
    wrong = (graph.labels + 1) % graph.num_classes
    wrong[graph.split.train] = graph.labels[graph.split.train]
    other = dataclasses.replace(graph, labels=wrong)
    first, second = (method(classifier_epochs=5).learn(each, context()) for each in (graph, other))
    np.testing.assert_array_equal(first, second)
    moved = dataclasses.replace(graph, labels=(graph.labels + 1) % graph.num_classes)
    assert not np.array_equal(method(classifier_epochs=5).learn(moved, context()), first)


@pytest.mark.parametrize(
    ("key", "value"),
    [("num_iterations", 0), ("gamma", -1), ("retain", -1), ("temperature", 0), ("classifier_epochs", 0)],
)
def test_wrong_values_are_refused(key, value):
    with pytest.raises(RequestError, match=rf"method\.{key}="):
        method(**{key: value})
