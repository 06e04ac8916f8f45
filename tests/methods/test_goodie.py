"""GOODIE: both contrastive losses equal to loops over pairs, by hand on three nodes, labels left out one by one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch import Tensor

from pagnn_bench.baselines import goodie_contrast
from pagnn_bench.baselines.goodie import own_share
from pagnn_bench.baselines.goodie_contrast import CentroidContrast, PairContrast
from pagnn_bench.baselines.label_prop import propagate_labels
from pagnn_bench.config.errors import RequestError
from pagnn_bench.data.graph import Split, build_graph
from pagnn_bench.methods import build_method
from pagnn_bench.missing import IncompleteGraph, Observed, hide
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.propagate import mean_operator, symmetric_operator
from tests.conftest import random_graph, random_observed
from tests.methods.learners import CPU, context, shipped

TARGET = "pagnn_bench.baselines.goodie.Goodie"


def method(**changes):
    settings = shipped("goodie", {"hidden": 4, **changes})
    arguments = {key: settings[key] for key in settings if key not in ("dropout", "input_dropout", "bias")}
    return build_method({"_target_": TARGET, "name": "goodie", **arguments})


def incomplete(seed: int = 0) -> IncompleteGraph:
    complete = random_graph(seed=seed)
    return hide(complete, random_observed(complete, "rows", 0.5)).for_method()


def log_shares(z: Tensor, temperature: float) -> Tensor:
    """log p_ij as the docstring has it, pair by pair; [n, n]."""
    z = z / z.norm(dim=1, keepdim=True)
    similar = z @ z.T / temperature
    rows = [
        similar[i] - torch.cat((similar[i, :i], similar[i, i + 1 :])).exp().sum().log() for i in range(len(z))
    ]
    return torch.stack(rows)


def naive_pairs(h: Tensor, labels, confidence, temperature: float) -> Tensor:
    shares, terms = log_shares(h, temperature), []
    for i in range(len(h)):
        others = [j for j in range(len(h)) if j != i and labels[j] == labels[i]]
        terms += [-confidence[i] * confidence[j] * shares[i, j] / len(others) for j in others]
    return torch.stack(terms).sum() / len(h)


def naive_centroids(h: Tensor, labels, confidence, temperature: float) -> Tensor:
    rows = [
        (h[labels == c] * torch.tensor(confidence[labels == c])[:, None]).mean(0) for c in np.unique(labels)
    ]
    return -log_shares(torch.stack(rows), temperature).sum(1).mean()


@pytest.mark.parametrize("block", [1 << 20, 50])
@pytest.mark.parametrize("temperature", [0.01, 0.5])
@pytest.mark.parametrize(
    ("kind", "naive"), [(PairContrast, naive_pairs), (CentroidContrast, naive_centroids)]
)
def test_losses_and_gradients_equal_the_loops(kind, naive, temperature, block, monkeypatch):
    """Two members of a stack, 23 nodes, a class with one node and one without, in one block and in blocks of two."""
    monkeypatch.setattr(goodie_contrast, "PAIRS", block)
    rng = np.random.default_rng(0)
    labels, confidence = rng.integers(3, size=23), rng.random(23)
    labels[5] = 3
    hidden = torch.from_numpy(rng.random((2, 23, 6)).astype(np.float32)).requires_grad_()
    weights = torch.tensor([1.0, -2.0])
    (weights * kind(labels, confidence, 5, temperature, CPU)(hidden)).sum().backward()
    exact = hidden.detach().double().requires_grad_()
    losses = torch.stack([naive(h, labels, confidence, temperature) for h in exact])
    (weights * losses).sum().backward()
    with torch.no_grad():
        found = kind(labels, confidence, 5, temperature, CPU)(hidden)
    np.testing.assert_allclose(found, losses.detach(), rtol=1e-4)
    scale = exact.grad.abs().max().item()
    np.testing.assert_allclose(hidden.grad, exact.grad, atol=1e-4 * scale)


@pytest.mark.parametrize("kind", [PairContrast, CentroidContrast])
def test_nodes_without_confidence_are_left_out(kind):
    """Not only as partners: they are in no class and in no normaliser, and they get no gradient."""
    rng = np.random.default_rng(1)
    labels, confidence, unsure = rng.integers(3, size=12), rng.random(12), np.arange(12) % 3 == 1
    confidence[unsure] = 0
    hidden = torch.from_numpy(rng.random((2, 12, 4)).astype(np.float32)).requires_grad_()
    loss = kind(labels, confidence, 3, 0.5, CPU)(hidden)
    alone = kind(labels[~unsure], confidence[~unsure], 3, 0.5, CPU)(hidden[:, ~unsure])
    torch.testing.assert_close(loss, alone)
    loss.sum().backward()
    assert not hidden.grad[:, unsure].any()
    assert hidden.grad[:, ~unsure].any()


def test_three_nodes_by_hand():
    """z = (1, 0), (1, 0), (0, 1), t = 0, 0, 1, c = 1, 1/2, 1, τ = 1.

    p_01 = p_10 = e / (e + 1); node 2 is alone in its class.
    """
    hidden = torch.tensor([[[2.0, 0.0], [3.0, 0.0], [0.0, 5.0]]])
    contrast = PairContrast(np.array([0, 0, 1]), np.array([1, 0.5, 1]), 2, 1.0, CPU)
    expected = 2 * 0.5 * np.log1p(np.exp(-1)) / 3
    np.testing.assert_allclose(contrast(hidden), [expected], rtol=1e-6)


def test_rows_of_zeros_do_no_harm():
    """A node whose hidden layer is 0, as that of a node without neighbours is at first."""
    for kind in (PairContrast, CentroidContrast):
        hidden = torch.zeros(1, 4, 3, requires_grad=True)
        loss = kind(np.array([0, 0, 1, 1]), np.array([1, 0, 0, 0.5]), 2, 0.01, CPU)(torch.relu(hidden))
        loss.sum().backward()
        assert torch.isfinite(loss).all()
        assert torch.isfinite(hidden.grad).all()


def test_own_share_is_what_a_training_node_gets_from_its_own_label():
    """ĀP at node i with and without the label of i, for every training node; no score reaches its bound here."""
    graph = incomplete(seed=3)
    spread, mean, train = (
        symmetric_operator(graph.adjacency),
        mean_operator(graph.adjacency),
        graph.split.train,
    )
    found = own_share(spread, mean, train, 0.5, 50)
    with_all = mean @ propagate_labels(spread, graph, 0.5, 50)
    for share, node in zip(found, train):
        rest = dataclasses.replace(graph.split, train=np.setdiff1d(train, [node]))
        without = mean @ propagate_labels(spread, dataclasses.replace(graph, split=rest), 0.5, 50)
        assert with_all[node, graph.labels[node]] - without[node, graph.labels[node]] == pytest.approx(
            share, rel=1e-5
        )
        assert share > 0


def label_inputs(network, part: str) -> np.ndarray:
    """The rows of ĀP that a part reads."""
    classes = network.weight_labels.shape[1]
    return network.parts[part].labels(torch.eye(classes)[None], None, 0.0)[0].numpy()


def test_leave_one_out_takes_their_own_label_out_of_the_rows_of_training_nodes():
    graph = incomplete()
    plain, careful = (
        method(leave_one_out=flag).prepare(graph, context()).network([1], 1.0) for flag in (False, True)
    )
    train = graph.split.train
    difference = label_inputs(plain, "train") - label_inputs(careful, "train")  # of all nodes
    own = np.zeros_like(difference, dtype=bool)
    own[train, graph.labels[train]] = True
    assert (difference[own] > 0).all()
    assert not difference[~own].any()


def test_attention_by_hand():
    """A triangle, so that Â = Ā is 1/3 everywhere. Node 0 has x = 1 and class 1; FP fills in 1 elsewhere: ĀF = 1.

    The scores of class 1 sum to u = α u + 1 - α, so u = 1 and ĀP = (0, 1/3). With W_f = 2, W_l = (0, 9/2), v = 1 and
    slope 1 (no bend): h^f = 2, h^l = 3/2, and h is their mean with weights e² and e^1.5. The last Ā changes nothing.
    """
    split = Split(np.array([0]), np.array([1]), np.array([2]))
    edges = np.array([[0, 1, 2], [1, 2, 0]])
    graph = build_graph("triangle", np.ones((3, 1)), edges, np.array([1, 0, 0]), split)
    graph = hide(graph, Observed((3, 1), rows=np.array([True, False, False]))).for_method()
    prepared = method(num_iterations=60, slope=1.0, hidden=1).prepare(graph, context())
    network = prepared.network([0], 1.0)
    values = {"weight_features": [[2.0]], "weight_labels": [[0.0], [4.5]], "attention": [[1.0]]}
    values["weight_out"] = [[1.0, -1.0]]
    network.replace({name: torch.tensor([value]) for name, value in values.items()})
    fused = (2 * np.exp(2) + 1.5 * np.exp(1.5)) / (np.exp(2) + np.exp(1.5))
    np.testing.assert_allclose(network("test", None).detach(), [[[fused, -fused]]], rtol=1e-5)


def test_without_a_contrast_the_loss_is_the_cross_entropy():
    """And λ scales what is added."""
    graph = incomplete()

    def total(weight: float, scaled: bool = False) -> float:
        network = method(contrast=weight, scaled=scaled).prepare(graph, context()).network([1, 2], 1.0)
        losses = network.backward(DropoutStreams([1, 2], CPU), lambda logits: logits.square().mean((1, 2)))
        return losses.sum().item()

    for scaled in (False, True):
        none, one, two = (total(weight, scaled) for weight in (0.0, 1.0, 2.0))
        assert one != none
        assert two - none == pytest.approx(2 * (one - none), rel=1e-4)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_iterations", 0),
        ("lp_alpha", 1),
        ("contrast", -1),
        ("temperature", 0),
        ("scaled", "no"),
        ("slope", -1),
    ],
)
def test_wrong_values_are_refused(key, value):
    with pytest.raises(RequestError, match=rf"method\.{key}="):
        method(**{key: value})
