"""D2PT: propagation and similar nodes by hand, the distance of prototypes equal to a loop over classes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
import torch.nn.functional as F

from pagnn_bench.baselines import d2pt
from pagnn_bench.baselines.d2pt import D2PT, nearest_nodes, spread_far
from pagnn_bench.baselines.d2pt_network import prototype_distance
from pagnn_bench.config.errors import RequestError
from pagnn_bench.methods import build_method
from pagnn_bench.missing import hide
from pagnn_bench.nn.dropout import DropoutStreams
from tests.conftest import random_graph, random_observed
from tests.methods.learners import CPU, context, shipped

TARGET = "pagnn_bench.baselines.d2pt.D2PT"


def method(**changes) -> D2PT:
    settings = shipped("d2pt", {"hidden": 4, "dropout": 0.0, **changes})
    arguments = {key: settings[key] for key in settings if key not in ("input_dropout", "bias")}
    return build_method({"_target_": TARGET, "name": "d2pt", **arguments})


def test_two_steps_by_hand(path3):
    """0 - 1 - 2, x = (1, 0, 0): Â has 1/2, 1/√6 and 1/3 on 0-0, 0-1 and 1-1."""
    alpha, edge = 0.25, 6**-0.5
    first = [0.75 / 2 + 0.25, 0.75 * edge, 0]
    second = [
        0.75 * (first[0] / 2 + edge * first[1]) + 0.25,
        0.75 * (edge * first[0] + first[1] / 3),
        0.75 * edge * first[1],
    ]
    features = sp.csr_array(np.array([[1.0], [0], [0]], dtype=np.float32))
    np.testing.assert_allclose(spread_far(path3, features, 2, alpha, CPU).ravel(), second, rtol=1e-6)


def test_blocks_of_columns_do_not_change_the_result(graph, monkeypatch):
    whole = spread_far(graph.adjacency, graph.features, 5, 0.1, CPU)
    monkeypatch.setattr(d2pt, "BLOCK_ENTRIES", 2 * graph.num_nodes)
    np.testing.assert_allclose(spread_far(graph.adjacency, graph.features, 5, 0.1, CPU), whole, rtol=1e-6)


@pytest.mark.parametrize("entries", [1 << 22, 20])
def test_similar_nodes_by_hand(entries, monkeypatch):
    """Angles 0°, 10°, 30° and 80°, and a row of zeros. With one neighbour each: 0-1, 1-0, 2-1, 3-2; 4 has none."""
    monkeypatch.setattr(d2pt, "SIMILARITIES", entries)
    angle = np.radians([0, 10, 30, 80])
    values = np.vstack((np.stack((np.cos(angle), np.sin(angle)), axis=1) * [[1], [2], [3], [4]], [[0, 0]]))
    found = nearest_nodes(values.astype(np.float32), 1, CPU).toarray()
    expected = np.zeros((5, 5))
    for i, j in ((0, 1), (1, 2), (2, 3)):
        expected[i, j] = expected[j, i] = 1
    np.testing.assert_array_equal(found, expected)


def test_more_neighbours_than_nodes_link_all_that_are_similar():
    found = nearest_nodes(np.ones((3, 2), dtype=np.float32), 10, CPU).toarray()
    np.testing.assert_array_equal(found, 1 - np.eye(3))


def test_distance_of_prototypes_equals_the_loop_over_classes():
    first, second = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 2, 4, 3)))
    found = prototype_distance(first, second, 0.3)
    for k, (p, a) in enumerate(zip(first, second)):
        p, a = (x / x.norm(dim=1, keepdim=True) for x in (p, a))
        terms = []
        for c in range(4):
            others = [u for u in range(4) if u != c]
            wrong = [a[c] @ a[u] for u in others] + [a[c] @ p[u] for u in others]
            logits = torch.stack([a[c] @ p[c], *wrong]) / 0.3
            terms.append(F.cross_entropy(logits[None], torch.tensor([0])))
        assert found[k] == pytest.approx(torch.stack(terms).mean())


def test_members_are_means_over_predictions_and_true_training_labels():
    """Every node counts for one class, a training node for its own and in full; rows sum to 1."""
    complete = random_graph()
    graph = hide(complete, random_observed(complete, "rows")).for_method()
    network = method().prepare(graph, context()).network([1, 2], 1.0)
    n, classes = complete.num_nodes, complete.num_classes
    logits = torch.from_numpy(np.random.default_rng(0).normal(size=(2, n, classes)))
    found = network._members(logits).numpy()
    train = graph.split.train
    for weights, scores in zip(found, logits):
        sure, label = torch.softmax(scores, dim=1).max(dim=1)
        sure[train], label[train] = 1, torch.from_numpy(graph.labels[train])
        expected = np.zeros((classes, n))
        expected[label, np.arange(n)] = sure
        np.testing.assert_allclose(weights, expected / expected.sum(axis=1, keepdims=True), rtol=1e-6)


def test_weights_of_the_loss_and_training_nodes_alone():
    """λ scales what is added; with both at 0 neither the second channel nor its layer exists."""
    complete = random_graph()
    graph = hide(complete, random_observed(complete, "rows")).for_method()

    def total(**weights: float) -> float:
        network = method(**weights).prepare(graph, context()).network([1], 1.0)
        losses = network.backward(DropoutStreams([1], CPU), lambda logits: logits.square().mean((1, 2)))
        assert hasattr(network, "weight3") == (weights["alignment"] > 0)
        return losses.item()

    none = total(augmented=0.0, alignment=0.0)
    for weights in ({"augmented": 1.0, "alignment": 0.0}, {"augmented": 0.0, "alignment": 1.0}):
        one, two = total(**weights), total(**{key: 2 * value for key, value in weights.items()})
        assert one > none
        assert two - none == pytest.approx(2 * (one - none), rel=1e-5)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_iterations", 0),
        ("alpha", 1),
        ("neighbours", 0),
        ("augmented", -1),
        ("alignment", -1),
        ("temperature", 0),
    ],
)
def test_wrong_values_are_refused(key, value):
    with pytest.raises(RequestError, match=rf"method\.{key}="):
        method(**{key: value})
