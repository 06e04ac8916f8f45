"""GCNmf as a method: its start from the mixture, training in stacks, and what it refuses."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.mixture import GaussianMixture

from pagnn_bench.baselines.gcnmf import fit_mixture
from pagnn_bench.config.errors import RequestError
from pagnn_bench.missing import Observed, hide
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.network import PARTS
from pagnn_bench.training.loop import train
from pagnn_bench.training.protocol import Protocol
from tests.conftest import random_graph, renamed
from tests.methods.gcnmf_cases import CONTEXT, CPU, PATTERNS, gcnmf, incomplete

PROTOCOL = Protocol(
    lr=0.02,
    weight_decay=5e-3,
    patience=15,
    max_epochs=60,
    stopping="either",
    init_gain=1.414,
    feature_norm="none",
)


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


@pytest.mark.parametrize("pattern", ["rows", "cells"])
@pytest.mark.parametrize("quirks", [False, True])
def test_names_of_nodes_do_not_matter(monkeypatch, pattern, quirks):
    """With the mixture given: that EM starts from draws which depend on the order of nodes is its right."""
    graph = incomplete(pattern, 0.6)
    moved = renamed(graph, np.random.default_rng(2).permutation(graph.labels.size))
    mixture = fit_mixture(graph, 3, seed=0)
    monkeypatch.setattr("pagnn_bench.baselines.gcnmf.fit_mixture", lambda *_: mixture)
    networks = [
        gcnmf(reference_quirks=quirks).prepare(g, CONTEXT).network([0], 1.414) for g in (graph, moved)
    ]
    for part in PARTS:
        plain, other = (network(part, None) for network in networks)
        torch.testing.assert_close(other, plain, atol=1e-5, rtol=1e-5)


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


def test_per_seed_reaches_the_executor():
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
