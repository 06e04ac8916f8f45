"""GCNmf's network: the fast form against the plain one with K x n x d tensors, and its limits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric.nn import GCNConv

from pagnn_bench.baselines import gcnmf_fill
from pagnn_bench.baselines.gcnmf_fill import RowFill
from pagnn_bench.baselines.gcnmf_layers import Mixture, ReferenceLayer
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.inputs import SparseInput
from pagnn_bench.nn.network import neighbourhood
from pagnn_bench.nn.propagate import symmetric_operator
from tests.methods.gcnmf_cases import CONTEXT, CPU, PATTERNS, gcnmf, incomplete


def scattered(network):
    """The network with parameters off their start: components that differ, biases that are not 0."""
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
        network.log_sigma2.clamp_(min=-4.0)
    return network


class BigTensors:
    """GCNmf of one member, written as the formulas stand, in double precision, on all nodes at once."""

    def __init__(self, graph, network, member, quirks):
        self.x = torch.from_numpy(graph.features.toarray()).double()
        self.m = torch.from_numpy(graph.observed.dense().copy()).double()
        self.a = torch.from_numpy(symmetric_operator(graph.adjacency).toarray())
        self.p = {k: v[member].detach().double().requires_grad_() for k, v in network.named_parameters()}
        self.quirks = quirks

    def logits(self, inner=None, outer=1.0):
        """``inner``: factors of the observed and the missing part (plain form) or of each component (quirks)."""
        p, a, m = self.p, self.a, self.m
        sigma2 = p["log_sigma2"].exp()
        mean = self.x + (1 - m) * p["mu"][:, None]  # [K, n, d]
        variance = (1 - m) * sigma2[:, None]
        seen = mean
        if self.quirks:
            if inner is not None:
                mean, variance = mean * inner, variance * inner
            seen = mean
            u = a @ (mean @ p["weight1"] + p["bias1"])
            s = (a * a) @ (variance @ p["weight1"] ** 2)
        else:
            known, filled = (1.0, 1.0) if inner is None else inner
            u = ((a @ self.x) * known + (a @ ((1 - m) * p["mu"][:, None])) * filled) @ p["weight1"] + p[
                "bias1"
            ]
            s = (((a * a) @ variance) * filled**2) @ p["weight1"] ** 2
        distance = (seen - p["mu"][:, None]) ** 2 / sigma2[:, None]  # 0 at what is missing, unless dropped
        if not self.quirks:
            distance = distance + m * p["log_sigma2"][:, None]
        gamma = torch.softmax(p["log_pi"][:, None] - 0.5 * distance.sum(2), dim=0)
        w = u / s.clamp_min(1e-30).sqrt()
        normal = torch.distributions.Normal(0.0, 1.0)
        spread = s.clamp_min(1e-30).sqrt() * normal.log_prob(w).exp() + u * normal.cdf(w)
        hidden = (gamma[..., None] * torch.where(s > 0, spread, u.relu())).sum(0) * outer
        if self.quirks:
            return a @ (hidden @ p["weight2"] + p["bias2"])
        return a @ (hidden @ p["weight2"]) + p["bias2"]


def laid_out(graph, network, seeds, rate):
    """The engine's dropout factors of the training part, per member, on the whole graph."""
    operator = symmetric_operator(graph.adjacency)
    _, rows = neighbourhood(operator, graph.split.train)
    _, columns = neighbourhood(operator, rows)
    (n, d), k, h = graph.features.shape, network.mu.shape[1], network.weight1.shape[2]
    streams, layer = DropoutStreams(seeds, CPU), network.parts["train"].train

    def draw(*shape):
        return streams.draw(int(np.prod(shape)), rate).factors().view(len(seeds), *shape).double()

    if isinstance(layer, ReferenceLayer):
        inner = torch.ones(len(seeds), k, n, d, dtype=torch.double)
        for component in range(k):
            inner[:, component, columns] = draw(len(columns), d)
    else:
        known, filled = torch.ones(2, len(seeds), n, d, dtype=torch.double)
        if isinstance(layer.observed, SparseInput):
            there = np.zeros((n, d), dtype=bool)
            there[rows] = (operator @ graph.features).toarray()[rows] != 0
            known[:, torch.from_numpy(there)] = draw(there.sum())
        else:
            known[:, rows] = draw(len(rows), d)
        if isinstance(layer.fill, RowFill):
            masks = min(gcnmf_fill.POOL, len(rows))
            filled[:, rows] = draw(masks, d)[:, np.arange(len(rows)) % masks]
        else:
            filled[:, rows] = draw(len(rows), d)
        inner = torch.stack((known, filled), dim=1)
    outer = torch.ones(len(seeds), n, h, dtype=torch.double)
    outer[:, rows] = draw(len(rows), h)
    return inner, outer


@pytest.mark.parametrize("quirks", [False, True])
@pytest.mark.parametrize(
    ("pattern", "rate"),
    [
        ("rows", 0.0),
        ("rows", 0.5),
        ("rows", 0.99),
        ("cells", 0.0),
        ("cells", 0.5),
        ("cells", 0.99),
        ("biased", 0.5),
    ],
)
def test_evaluation_equals_big_tensors(pattern, rate, quirks):
    graph = incomplete(pattern, rate, scale=True, nodes=60)
    method = gcnmf(reference_quirks=quirks)
    network = scattered(method.prepare(graph, CONTEXT).network([1, 2], 1.414))
    for part in ("train", "val", "test"):
        logits = network(part, None).detach().double()
        for member in range(2):
            expected = (
                BigTensors(graph, network, member, quirks).logits()[getattr(graph.split, part)].detach()
            )
            torch.testing.assert_close(logits[member], expected, atol=1e-5, rtol=1e-5)


def assert_training_equals_big_tensors(graph, network, quirks, dropout):
    """Logits and the gradient of every parameter, under the documented rule of dropout."""
    seeds = [7, 8, 9]
    logits = network("train", DropoutStreams(seeds, CPU))
    pattern_of = torch.arange(logits[0].numel()).view_as(logits[0]).cos()
    (logits * pattern_of).sum().backward()
    inner, outer = laid_out(graph, network, seeds, dropout) if dropout else ([None] * 3, [1.0] * 3)
    for member in range(3):
        plain = BigTensors(graph, network, member, quirks)
        expected = plain.logits(inner[member], outer[member])[graph.split.train]
        torch.testing.assert_close(logits[member].double(), expected, atol=2e-5, rtol=1e-5)
        (expected * pattern_of).sum().backward()
        for name, parameter in network.named_parameters():
            gradient = parameter.grad[member].double()
            torch.testing.assert_close(gradient, plain.p[name].grad, atol=2e-4, rtol=1e-3, msg=name)


@pytest.mark.parametrize("quirks", [False, True])
@pytest.mark.parametrize(("pattern", "rate"), [("rows", 0.5), ("rows", 0.9), ("cells", 0.5), ("biased", 0.7)])
@pytest.mark.parametrize("dropout", [0.5, 0.3, 0.0])
def test_training_equals_big_tensors(pattern, rate, quirks, dropout, monkeypatch):
    monkeypatch.setattr(gcnmf_fill, "POOL", 4)  # far fewer masks than rows
    graph = incomplete(pattern, rate, nodes=60)
    method = gcnmf(reference_quirks=quirks, dropout=dropout)
    network = scattered(method.prepare(graph, CONTEXT).network([1, 2, 3], 1.414))
    assert_training_equals_big_tensors(graph, network, quirks, dropout)


@pytest.mark.parametrize("dropout", [0.5, 0.0])
def test_responsibilities_of_zero_change_nothing(dropout):
    """Components so narrow that most γ underflow, as on real graphs, and two of them alike, so that some do not."""
    graph = incomplete("cells", 0.5, nodes=60, features=40)
    network = scattered(gcnmf(dropout=dropout).prepare(graph, CONTEXT).network([1, 2, 3], 1.414))
    with torch.no_grad():
        network.log_sigma2.fill_(-5.5)
        network.mu[:, 2] = network.mu[:, 1] + 1e-3
    mixture = Mixture(network.log_pi, network.mu, network.log_sigma2)
    gamma = network.parts["train"].train.responsibilities(mixture)
    assert 0.3 < (gamma == 0).float().mean() < 0.5
    assert ((gamma > 0.1) & (gamma < 0.9)).float().mean() > 0.2
    assert_training_equals_big_tensors(graph, network, False, dropout)


@pytest.mark.parametrize("quirks", [False, True])
def test_sparse_input_takes_the_same_way(quirks):
    """At high rates most of ÂX° is 0, and the other form of the observed part is used."""
    graph = incomplete("rows", 0.9, nodes=120)
    network = scattered(gcnmf(reference_quirks=quirks).prepare(graph, CONTEXT).network([1], 1.414))
    assert isinstance(network.parts["train"].evaluate.observed, SparseInput)
    logits = network("train", DropoutStreams([7], CPU))
    inner, outer = laid_out(graph, network, [7], 0.5)
    expected = BigTensors(graph, network, 0, quirks).logits(inner[0], outer[0])[graph.split.train]
    torch.testing.assert_close(logits[0].double(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_everything_observed_is_a_gcn(pattern):
    graph = incomplete(pattern, 0.0)
    network = scattered(gcnmf().prepare(graph, CONTEXT).network([1], 1.414))
    first, second = GCNConv(12, 4), GCNConv(4, 3)
    with torch.no_grad():
        for conv, weight, bias in ((first, "weight1", "bias1"), (second, "weight2", "bias2")):
            conv.lin.weight.copy_(getattr(network, weight)[0].T)
            conv.bias.copy_(getattr(network, bias)[0, 0])
        edges = torch.from_numpy(np.array(graph.adjacency.nonzero())).long()
        x = torch.from_numpy(graph.features.toarray())
        expected = second(first(x, edges).relu(), edges)
    torch.testing.assert_close(network("test", None)[0], expected[graph.split.test], atol=1e-5, rtol=1e-5)


def test_no_tensor_has_a_component_of_every_attribute_of_every_row():
    class Largest(TorchDispatchMode):
        size = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            tensors = out if isinstance(out, (tuple, list)) else [out]
            self.size = max([self.size, *(t.numel() for t in tensors if isinstance(t, torch.Tensor))])
            return out

    for pattern in PATTERNS:
        graph = incomplete(pattern, 0.5, nodes=200, features=150)
        network = gcnmf(components=8).prepare(graph, CONTEXT).network([1], 1.414)
        with Largest() as largest:
            network("train", DropoutStreams([7], CPU)).sum().backward()
        rows = network.parts["train"].operator.matrix.shape[1]
        # One masked copy of both matrices at most, in words of 64 columns, and never one per component.
        assert largest.size <= rows * 2 * 192
