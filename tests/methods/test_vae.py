"""The VAE: its loss by hand, what it learns from, when it stops, and that it finds structure where there is some."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from pagnn_bench.baselines.mf import MeanFilling
from pagnn_bench.baselines.vae import VAE, Network, smoothed_means
from pagnn_bench.config.errors import RequestError
from pagnn_bench.methods.imputation import imputation_error
from pagnn_bench.missing import draw_observed, hide
from pagnn_bench.nn.dropout import DropoutStreams
from tests.conftest import random_graph, random_observed
from tests.methods.learners import (
    CPU,
    GCN,
    PATTERNS,
    check_seed_decides,
    context,
    fill_words,
    shipped,
    topic_graph,
)

FAST = {"width": 16, "latent": 4, "epochs": 20}


def vae(**changes: Any) -> VAE:
    return VAE(**shipped("vae", changes))


def sigmoid(value):
    return 1 / (1 + np.exp(-value))


def test_the_loss_by_hand():
    """Node by node and entry by entry, with plain numpy."""
    rng = np.random.default_rng(0)
    x = (rng.random((5, 7)) < 0.4).astype(np.float32) * rng.random((5, 7)).astype(np.float32)
    m = rng.random((5, 7)) < 0.6
    eps = rng.standard_normal((5, 2)).astype(np.float32)
    model = Network(7, 6, 2, torch.Generator().manual_seed(1))
    layers = [
        (layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy())
        for layer in (model.encoder, model.posterior, model.decoder, model.output)
    ]
    (w1, b1), (w2, b2), (w3, b3), (w4, b4) = layers
    total = 0.0
    for i in range(5):
        posterior = w2 @ np.maximum(w1 @ (m[i] * x[i]) + b1, 0) + b2
        mean, log_variance = posterior[:2], posterior[2:]
        z = mean + np.sqrt(np.exp(log_variance)) * eps[i]
        p = sigmoid(w4 @ np.maximum(w3 @ z + b3, 0) + b4)
        for f in range(7):
            if m[i, f]:
                total -= x[i, f] * np.log(p[f]) + (1 - x[i, f]) * np.log(1 - p[f])
        total += sum(0.5 * (mean**2 + np.exp(log_variance) - 1 - log_variance))
    loss = model.loss(torch.from_numpy(x * m), torch.from_numpy(m), torch.from_numpy(eps))
    assert loss.item() == pytest.approx(total / 5, rel=1e-5)


def test_entries_that_are_not_learned_from_have_no_gradient():
    model = Network(6, 4, 2, torch.Generator().manual_seed(0))
    m = torch.ones(3, 6, dtype=torch.bool)
    m[:, 2] = False
    model.loss(torch.ones(3, 6) * m, m, torch.zeros(3, 2)).backward()
    assert (model.output.bias.grad == 0).tolist() == [False, False, True, False, False, False]
    assert (model.encoder.weight.grad[:, 2] == 0).all()


def test_dropout_acts_on_input_and_hidden_layer_and_only_in_training():
    model = Network(6, 4, 2, torch.Generator().manual_seed(0))
    x, m, eps = torch.ones(3, 6), torch.ones(3, 6, dtype=torch.bool), torch.zeros(3, 2)
    losses = {model.loss(x, m, eps, DropoutStreams([seed], CPU), 0.5).item() for seed in range(8)}
    assert len(losses) > 4
    assert model.loss(x, m, eps, DropoutStreams([0], CPU), 0.0) == model.loss(x, m, eps)


def test_the_output_starts_at_the_column_means():
    x = np.array([[1, 0, 0], [0, 0, 0], [1, 0, 0]], dtype=np.float32)
    known = np.array([[1, 1, 0], [1, 1, 0], [0, 1, 0]], dtype=bool)
    means = smoothed_means(x, known)
    np.testing.assert_allclose(means, [1.5 / 3, 0.5 / 4, 0.5])
    model = Network(3, 4, 2, torch.Generator().manual_seed(0))
    model.start_at(means)
    with torch.no_grad():
        model.output.weight.zero_()
        np.testing.assert_allclose(torch.sigmoid(model(torch.ones(1, 3)))[0], means, rtol=1e-6)


@pytest.fixture
def incomplete():
    graph = random_graph(nodes=60)
    return hide(graph, random_observed(graph, "cells", 0.4))


def test_held_out_entries_are_hidden_from_encoder_and_loss(incomplete, monkeypatch):
    seen = []
    plain = Network.loss

    def spy(self, x, m, *rest):
        seen.append((x.clone(), m.clone()))
        return plain(self, x, m, *rest)

    monkeypatch.setattr(Network, "loss", spy)
    vae(**FAST | {"epochs": 1, "held_out": 0.3, "batch": 1000}).learn(incomplete, context())
    ((x, m),) = seen
    known = int(incomplete.observed.dense().sum())
    assert m.sum().item() == pytest.approx(0.7 * known, rel=0.1)
    assert (x[~m] == 0).all()
    assert 0 < x.count_nonzero().item() < incomplete.features.nnz


def test_nodes_without_attributes_do_not_train(monkeypatch):
    graph = random_graph()
    observed = random_observed(graph, "rows", 0.5)
    sizes = []
    plain = Network.loss
    monkeypatch.setattr(Network, "loss", lambda self, x, *rest: sizes.append(len(x)) or plain(self, x, *rest))
    vae(**FAST | {"epochs": 3, "batch": 8}).learn(hide(graph, observed), context())
    assert max(sizes) == 8
    assert sum(sizes) == 3 * observed.rows.sum()


def test_it_stops_by_itself_and_keeps_the_best_weights(incomplete, monkeypatch):
    scores = iter([5.0, 4.0, 6.0, 6.0, 6.0, 1.0])
    monkeypatch.setattr(VAE, "_surprise", lambda self, *rest: next(scores))
    reports: list[str] = []
    stopped = vae(**FAST | {"patience": 3}).learn(incomplete, context(report=reports.append))
    assert reports == [f"VAE {epoch}/20" for epoch in range(1, 6)]
    scores = iter([5.0, 4.0])
    np.testing.assert_array_equal(vae(**FAST | {"epochs": 2}).learn(incomplete, context()), stopped)


def test_the_score_is_the_cross_entropy_of_the_held_out_entries():
    rng = np.random.default_rng(0)
    x = torch.from_numpy((rng.random((9, 5)) < 0.4).astype(np.float32))
    held = torch.from_numpy(rng.random((9, 5)) < 0.3)
    model = Network(5, 4, 2, torch.Generator().manual_seed(0))
    p = torch.sigmoid(model(x * ~held)).detach().numpy()
    terms = [-np.log(p[i, f] if x[i, f] else 1 - p[i, f]) for i, f in np.argwhere(held.numpy())]
    method = vae(batch=4)
    score = method._surprise(model, method._judged(x, ~held, held))
    assert score == pytest.approx(np.mean(terms), rel=1e-5)


def test_the_seed_decides_and_the_global_generators_are_left_alone(incomplete):
    check_seed_decides(lambda: vae(**FAST), incomplete)


@PATTERNS
def test_fills_with_probabilities(pattern, rate):
    """All nodes without attributes get the same row."""
    filled, known = fill_words(vae(**FAST), pattern, rate)
    blind = filled[~known.any(axis=1)]
    np.testing.assert_array_equal(blind, np.repeat(blind[:1], len(blind), axis=0))


def test_real_values_are_filled_in_their_own_units():
    graph = random_graph(nodes=90)
    features = graph.features.toarray()
    features = sp.csr_array((features * np.linspace(1, 50, features.shape[1]) - 3).astype(np.float32))
    graph = dataclasses.replace(graph, features=features)
    observed = random_observed(graph, "cells", 0.3)
    method = vae(width=32, latent=8, epochs=60)
    error = imputation_error(method.impute(hide(graph, observed), context()), features, observed)
    means = imputation_error(MeanFilling(**GCN).impute(hide(graph, observed), context()), features, observed)
    assert error["impute_rmse"] < 1.1 * means["impute_rmse"]
    assert "impute_bce" not in error


def test_beats_mean_filling_where_words_have_topics():
    graph = topic_graph()
    missing = {"pattern": "cells", "exact": False}
    observed = draw_observed(missing, 0.3, graph.features.shape, seed=0)
    incomplete = hide(graph, observed)
    error = imputation_error(vae(epochs=150).impute(incomplete, context()), graph.features, observed)
    means = imputation_error(MeanFilling(**GCN).impute(incomplete, context()), graph.features, observed)
    assert error["impute_rmse"] < 0.85 * means["impute_rmse"]
    assert error["impute_bce"] < 0.75 * means["impute_bce"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("width", 0),
        ("latent", 1.5),
        ("model_dropout", 1),
        ("model_lr", 0),
        ("batch", "all"),
        ("epochs", 0),
        ("patience", -1),
        ("held_out", 1.0),
        ("hidden", 0),
    ],
)
def test_wrong_values_name_key_and_value(key, value):
    with pytest.raises(RequestError, match=f"method.{key}={value}: give a "):
        vae(**{key: value})


def test_nothing_of_the_gcn_is_a_setting_of_the_model():
    assert set(vae().settings()) == {
        *("width", "latent", "model_dropout", "model_lr", "batch", "epochs", "patience", "held_out")
    }
