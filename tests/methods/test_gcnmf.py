"""GCNmf: the fast form against the plain one with K x n x d tensors, its limits, and its start from the mixture."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from scipy.stats import norm
from sklearn.mixture import GaussianMixture
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric.nn import GCNConv

from pagnn_bench.baselines import gcnmf_layers
from pagnn_bench.baselines.gcnmf import GCNmf, fit_mixture
from pagnn_bench.baselines.gcnmf_layers import Mixture, Responsibilities, RowFill
from pagnn_bench.baselines.gcnmf_network import expected_relu
from pagnn_bench.errors import RequestError
from pagnn_bench.methods.base import Context
from pagnn_bench.missing import Observed, draw_observed, hide
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.inputs import SparseInput
from pagnn_bench.nn.network import neighbourhood
from pagnn_bench.nn.propagate import symmetric_operator
from pagnn_bench.train import Protocol, train
from tests.conftest import random_graph

CPU = torch.device("cpu")
CONTEXT = Context(seed=2**62 + 1, device=CPU)  # seeds have 63 bits; scikit-learn takes 32
PATTERNS = ("rows", "cells", "biased")
PROTOCOL = Protocol(
    lr=0.02,
    weight_decay=5e-3,
    patience=15,
    max_epochs=60,
    stopping="either",
    init_gain=1.414,
    feature_norm="none",
)


def gcnmf(**changes):
    keys = {"hidden": 4, "dropout": 0.5, "components": 3, "per_seed": False, "reference_quirks": False}
    return GCNmf(**(keys | changes))


def incomplete(pattern="cells", rate=0.5, scale=False, **size):
    graph = random_graph(**size)
    if scale:  # attributes that are not binary
        values = graph.features.copy()
        values.data = np.random.default_rng(1).normal(size=values.nnz).astype(np.float32)
        graph = dataclasses.replace(graph, features=values)
    missing = {"pattern": pattern, "exact": False} | (
        {"low": 0.1, "high": 0.9} if pattern == "biased" else {}
    )
    return hide(graph, draw_observed(missing, rate, graph.features.shape, seed=3))


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

    if isinstance(layer, gcnmf_layers.ReferenceLayer):
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
            masks = min(gcnmf_layers.POOL, len(rows))
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


@pytest.mark.parametrize("quirks", [False, True])
@pytest.mark.parametrize(("pattern", "rate"), [("rows", 0.5), ("rows", 0.9), ("cells", 0.5), ("biased", 0.7)])
@pytest.mark.parametrize("dropout", [0.5, 0.3, 0.0])
def test_training_equals_big_tensors(pattern, rate, quirks, dropout, monkeypatch):
    """Logits and the gradient of every parameter, under the documented rule of dropout."""
    monkeypatch.setattr(gcnmf_layers, "POOL", 4)  # far fewer masks than rows
    graph = incomplete(pattern, rate, nodes=60)
    method = gcnmf(reference_quirks=quirks, dropout=dropout)
    network = scattered(method.prepare(graph, CONTEXT).network([1, 2, 3], 1.414))
    logits = network("train", DropoutStreams([7, 8, 9], CPU))
    pattern_of = torch.arange(logits[0].numel()).view_as(logits[0]).cos()
    (logits * pattern_of).sum().backward()
    inner, outer = laid_out(graph, network, [7, 8, 9], dropout) if dropout else ([None] * 3, [1.0] * 3)
    for member in range(3):
        plain = BigTensors(graph, network, member, quirks)
        expected = plain.logits(inner[member], outer[member])[graph.split.train]
        torch.testing.assert_close(logits[member].double(), expected, atol=2e-5, rtol=1e-5)
        (expected * pattern_of).sum().backward()
        for name, parameter in network.named_parameters():
            gradient = parameter.grad[member].double()
            torch.testing.assert_close(gradient, plain.p[name].grad, atol=2e-4, rtol=1e-3, msg=name)


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
        assert largest.size <= rows * 150 + 64  # one masked copy of the rows (bits are drawn in words of 64)


def test_expected_relu_is_the_mean_of_samples():
    u, s = torch.tensor([-2.0, -0.3, 0.0, 0.7, 3.0]), torch.tensor([1.0, 0.2, 2.0, 0.5, 4.0])
    noise = torch.randn(100_000, 5, generator=torch.Generator().manual_seed(0))
    samples = (u + s.sqrt() * noise).relu()
    error = (samples.mean(0) - expected_relu(u, s)).abs()
    assert (error < 4 * samples.std(0) / 100_000**0.5).all()


def test_expected_relu_without_variance_is_relu():
    u = torch.tensor([-3.0, -1e-6, 0.0, 1e-6, 2.0, 1e4]).requires_grad_()
    s = torch.zeros(6, requires_grad=True)
    out = expected_relu(u, s)
    torch.testing.assert_close(out, u.relu(), atol=1e-9, rtol=0)
    out.sum().backward()
    assert s.grad.tolist() == [0.0] * 6
    assert u.grad.tolist() == [0.0, 0.0, 0.5, 1.0, 1.0, 1.0]


def test_expected_relu_gradient():
    generator = torch.Generator().manual_seed(0)
    u = torch.randn(30, generator=generator, dtype=torch.double).requires_grad_()
    s = (0.1 + torch.rand(30, generator=generator, dtype=torch.double)).requires_grad_()
    # E[ReLU] is homogeneous, so that small variances can be checked in large numbers.
    for scale in (1.0, 1e-3, 1e-8):
        assert torch.autograd.gradcheck(lambda u, s, c=scale: expected_relu(c * u, c * c * s) / c, (u, s))
    # Nearly no variance: dr/du is the step, dr/ds = φ(w) / (2σ).
    u, s = torch.tensor([-1.0, 0.0, 1.0]).requires_grad_(), torch.full((3,), 1e-10).requires_grad_()
    expected_relu(u, s).sum().backward()
    torch.testing.assert_close(u.grad, torch.tensor([0.0, 0.5, 1.0]))
    torch.testing.assert_close(s.grad, torch.tensor([0.0, float(norm.pdf(0)) / 2e-5, 0.0]))


@pytest.mark.parametrize("floor", [1.0, 1e-6])
@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_responsibilities(pattern, floor):
    """Bayes' rule over the observed attributes, down to the smallest variances; no attribute at all leaves π."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 5)).astype(np.float32)
    known = rng.random((6, 5)) < 0.6
    known[2], known[3] = False, True
    if pattern == "rows":
        known = np.repeat(known[:, :1] & (np.arange(6) != 2)[:, None], 5, axis=1)
    # Every component is near one of the nodes, so that the nearest terms are small and not only large ones.
    mu = (x[:3] + np.sqrt(floor) * rng.normal(size=(3, 5))).astype(np.float32)
    log_sigma2 = np.log(floor * (0.5 + rng.random((3, 5)))).astype(np.float32)
    log_pi = np.log([0.5, 0.3, 0.2]).astype(np.float32)
    layer = Responsibilities(
        sp.csr_array(x * known), known[:, :1] if pattern == "rows" else known, log_det=True, device=CPU
    )
    mixture = Mixture(*(torch.from_numpy(p)[None] for p in (log_pi, mu, log_sigma2)))
    gamma = layer(mixture)[0]
    logits = np.empty((6, 3))
    for i in range(6):
        for k in range(3):
            own = known[i]
            density = norm.logpdf(
                x[i].astype(float), mu[k].astype(float), np.exp(log_sigma2[k].astype(float) / 2)
            )
            logits[i, k] = log_pi[k] + density[own].sum()
    expected = np.exp(logits - logits.max(1, keepdims=True))
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(gamma, expected, atol=1e-5)
    np.testing.assert_allclose(gamma[2], [0.5, 0.3, 0.2], rtol=1e-6)


def test_dealt_masks_have_the_moments_of_entry_wise_dropout():
    """Mean and variance of one hidden unit over many draws; the rows of different masks are independent."""
    share = torch.tensor([[0.5], [1.0], [0.2]])
    fill = RowFill(share, share**2)
    product = torch.randn(1, 40, 2, generator=torch.Generator().manual_seed(0))  # μ ⊙ W₁
    streams = DropoutStreams([5], CPU)
    draws = [fill(product, product.square(), streams, 0.4) for _ in range(1500)]
    mean, variance = (torch.stack(values)[:, 0] for values in zip(*draws))  # [1500, 3, 2]
    keep = 1 / 0.6
    torch.testing.assert_close(mean.mean(0), share * product[0].sum(0), atol=0.5, rtol=0)
    torch.testing.assert_close(
        mean.var(0), share**2 * (0.4 * keep) * product[0].square().sum(0), atol=0, rtol=0.1
    )
    # A dropped variable is D x: its variance is multiplied by D², whose mean is 1/(1−p), not 1.
    torch.testing.assert_close(
        variance.mean(0), share**2 * keep * product[0].square().sum(0), atol=0, rtol=0.05
    )
    assert abs(np.corrcoef(mean[:, 0, 0], mean[:, 1, 0])[0, 1]) < 0.08


def test_mixture_starts_from_em_on_mean_filled_features():
    graph = incomplete("cells", 0.4)
    x, m = graph.features.toarray().astype(float), graph.observed.dense()
    filled = np.where(m, x, x.sum(0) / m.sum(0))
    model = GaussianMixture(3, covariance_type="diag", random_state=5).fit(filled)
    mixture = fit_mixture(graph, 3, seed=5)
    np.testing.assert_allclose(mixture.log_pi.exp(), model.weights_, rtol=1e-5)
    np.testing.assert_allclose(mixture.mu, model.means_, atol=1e-6)
    np.testing.assert_allclose(mixture.log_sigma2.exp(), model.covariances_, rtol=1e-4)
    again, other = fit_mixture(graph, 3, seed=5), fit_mixture(graph, 3, seed=6)
    assert all(torch.equal(p, q) for p, q in zip(mixture, again))
    assert not torch.equal(mixture.mu, other.mu)


def test_a_column_that_nobody_shows(recwarn):
    graph = random_graph()
    cells = np.random.default_rng(0).random((40, 12)) < 0.5
    cells[:, 4] = False
    graph = hide(graph, Observed((40, 12), cells=cells))
    prepared = gcnmf().prepare(graph, CONTEXT)
    network = prepared.network([0], 1.414)
    np.testing.assert_allclose(network.mu[0, :, 4].detach(), 0.0, atol=1e-7)
    np.testing.assert_allclose(network.log_sigma2[0, :, 4].exp().detach(), 1e-6, rtol=1e-4)
    assert network("test", None).isfinite().all()
    assert not [warning for warning in recwarn if "sklearn" in str(warning.filename)]


@pytest.mark.parametrize("quirks", [False, True])
@pytest.mark.parametrize(
    ("pattern", "rate"), [("rows", 0.99), ("cells", 0.99), ("rows", 0.0), ("biased", 0.9)]
)
def test_gradients_are_finite_from_the_start(pattern, rate, quirks):
    """The isolated node is missing, most components are empty, variances are at their floor."""
    graph = incomplete(pattern, rate)
    network = gcnmf(components=5, reference_quirks=quirks).prepare(graph, CONTEXT).network([0, 1], 1.414)
    labels = torch.from_numpy(graph.labels[graph.split.train]).expand(2, -1)
    F.cross_entropy(network("train", DropoutStreams([3, 4], CPU)).transpose(1, 2), labels).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize("pattern", ["rows", "cells"])
@pytest.mark.parametrize("quirks", [False, True])
def test_a_seed_alone_equals_the_seed_in_a_stack(pattern, quirks):
    graph = incomplete(pattern, 0.5)
    prepared = gcnmf(reference_quirks=quirks).prepare(graph, CONTEXT)
    protocol = dataclasses.replace(PROTOCOL, patience=3, max_epochs=10 if quirks else 25)

    def run(seeds):
        network = prepared.network([100 + s for s in seeds], protocol.init_gain)
        return train(network, graph, protocol, [200 + s for s in seeds], CPU).records

    together = run([0, 1, 2])
    assert run([0, 1, 2]) == together
    for seed in range(3):
        alone = run([seed])[0]
        assert alone["status"] == "ok"
        assert alone["epochs"] == together[seed]["epochs"]
        assert alone["test_acc"] == pytest.approx(together[seed]["test_acc"], abs=1e-9)
        assert alone["val_loss"] == pytest.approx(together[seed]["val_loss"], rel=1e-4)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_learns_something_and_moves_the_mixture(pattern):
    graph = incomplete(pattern, 0.4, nodes=90)
    prepared = gcnmf(hidden=8).prepare(graph, CONTEXT)
    network = prepared.network([0, 1, 2], PROTOCOL.init_gain)
    start = network.mu[0].detach().clone()
    records = train(network, graph, PROTOCOL, [5, 6, 7], CPU).records
    assert np.mean([record["test_acc"] for record in records]) > 0.5  # chance is a third
    assert (network.mu[0] - start).abs().max() > 0.01
    assert 1 / 3 <= prepared.facts["largest_component"] <= 1


def test_per_seed_is_told_to_the_executor():
    assert gcnmf(per_seed=True).per_seed
    assert not gcnmf().per_seed


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden", 0),
        ("hidden", 2.5),
        ("components", 0),
        ("components", "many"),
        ("dropout", 1.0),
        ("dropout", "no"),
        ("per_seed", 1),
        ("reference_quirks", "yes"),
    ],
)
def test_wrong_values_are_named(key, value):
    with pytest.raises(RequestError, match=f"method.{key}={value}"):
        gcnmf(**{key: value})


def test_more_components_than_nodes():
    with pytest.raises(RequestError, match=r"method.components=41: .* 40"):
        gcnmf(components=41).prepare(incomplete(), CONTEXT)
