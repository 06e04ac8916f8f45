"""Label propagation: worked out by hand, equal to torch_geometric's, and one look instead of a training."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.nn import LabelPropagation as Reference
from torch_geometric.utils import add_self_loops

from pagnn_bench.baselines.label_prop import (
    FixedNetwork,
    LabelPropagation,
    plain_operator,
    propagate_labels,
)
from pagnn_bench.data.graph import Split, build_graph
from pagnn_bench.methods.base import Context
from pagnn_bench.missing import Observed, hide
from pagnn_bench.nn.network import PARTS
from pagnn_bench.training.loop import train
from pagnn_bench.training.protocol import Protocol
from tests.conftest import random_graph, random_observed

CPU = torch.device("cpu")
PROTOCOL = Protocol(0.01, 0.0, 5, 100, "val_acc", 1.0, "none")


def path():
    """0 - 1 - 2 and a node 3 apart; nodes 0 (class 1) and 2 (class 0) are for training."""
    split = Split(np.array([0, 2]), np.array([1]), np.array([3]))
    labels = np.array([1, 1, 0, 1])
    graph = build_graph("path", np.ones((4, 1)), np.array([[0, 1], [1, 2]]), labels, split)
    return hide(graph, Observed((4, 1), rows=np.ones(4, dtype=bool)))


def test_two_steps_by_hand():
    """S_01 = S_12 = 1/√2. Step 1: P_1 = α (1, 1)/√2; ends keep (1 - α) of their labels. Step 2: + α S P_1 = α²/2."""
    alpha = 0.8
    graph = path()
    found = propagate_labels(plain_operator(graph.adjacency), graph, alpha, 2)
    middle = alpha * (1 - alpha) / 2**0.5
    end = [alpha**2 / 2, alpha**2 / 2 + 1 - alpha]
    np.testing.assert_allclose(found, [end, [middle, middle], end[::-1], [0, 0]], rtol=1e-6)


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("alpha", [0.5, 0.99])
def test_equals_torch_geometric(alpha, self_loops):
    graph = hide(random_graph(seed=3), random_observed(random_graph(seed=3), "rows")).for_method()
    labels = torch.from_numpy(graph.labels).clamp(min=0)
    edges = torch.from_numpy(np.array(graph.adjacency.nonzero()))
    if self_loops:
        edges, _ = add_self_loops(edges, num_nodes=len(labels))
    reference = Reference(num_layers=50, alpha=alpha)
    expected = reference(labels, edges, mask=torch.from_numpy(graph.split.train))
    network = LabelPropagation(alpha, 50, self_loops).prepare(graph, Context(0, CPU)).network([0, 1], 1.0)
    for part in PARTS:
        nodes = getattr(graph.split, part)
        np.testing.assert_allclose(network(part, None).detach(), [expected[nodes]] * 2, atol=1e-5)


def test_a_node_without_neighbours_has_an_empty_row(graph):
    operator = plain_operator(graph.adjacency)
    assert operator[[-1]].nnz == 0
    np.testing.assert_allclose(operator.toarray(), operator.toarray().T)
    assert not operator.diagonal().any()


def test_a_network_without_parameters_is_evaluated_once():
    """Six members, more than are tested at once; nodes 1 and 3 have class 1."""
    scores = torch.tensor([[0.0, 1.0], [0.2, 0.8], [1.0, 0.0], [0.6, 0.4]])
    graph, looks = path(), []
    parts = {part: scores[getattr(graph.split, part)] for part in ("train", "val", "test")}
    network = FixedNetwork(parts, 6, CPU)
    result = train(network, graph, PROTOCOL, range(6), CPU, on_epoch=lambda epoch, done: looks.append(epoch))
    assert looks == [1]
    [record] = {tuple(sorted(record.items())) for record in result.records}
    record = dict(record)
    assert (record["test_acc"], record["val_acc"], record["epochs"], record["best_epoch"]) == (0.0, 1.0, 1, 1)
    assert record["val_loss"] == pytest.approx(np.log(1 + np.exp(0.2 - 0.8)), rel=1e-5)
