"""How SAT trains: each step moves its own networks only, by the gradients of the formula; which epoch is kept."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from pagnn_bench.baselines.sat import Training
from pagnn_bench.baselines.sat_model import recall
from pagnn_bench.data import load_graph
from pagnn_bench.missing import draw_observed, hide
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.propagate import symmetric_operator
from tests.conftest import random_graph
from tests.methods.sat_cases import CONTEXT, CPU, group, incomplete, sat


def known(training: Training, graph) -> np.ndarray:
    """X_T."""
    return graph.features.toarray()[training.learned]


@pytest.fixture
def training() -> Training:
    return Training(sat(), incomplete(), CONTEXT)


def test_ones_weigh_as_much_as_zeros(training):
    x = known(training, incomplete())
    assert training.weight == pytest.approx((x == 0).sum() / (x == 1).sum())


def test_structure_encoder_equals_a_dense_gcn_on_the_identity(training):
    a = torch.from_numpy(symmetric_operator(random_graph(nodes=60).adjacency).toarray()).float()
    u1, u2 = training.generator.structure.u1[0], training.generator.structure.u2[0]
    hidden = F.elu(a @ torch.eye(len(a)) @ u1)
    torch.testing.assert_close(training.generator.structure(None), F.elu(a @ hidden @ u2))
    assert u1.shape == (60, 24)


def test_attribute_encoder_equals_a_dense_mlp(training):
    first, second = training.generator.attributes.first, training.generator.attributes.second
    x = torch.from_numpy(known(training, incomplete()))
    torch.testing.assert_close(training.generator.attributes(None), second(torch.relu(first(x))))


def test_dropout_is_on_in_training_and_off_in_evaluation(training):
    assert training.logits(training.held).equal(training.logits(training.held))
    for encoder in (training.generator.attributes, training.generator.structure):
        streams = DropoutStreams([1], CPU)
        assert not encoder(streams).equal(encoder(streams))


def moved(training: Training, step: str) -> tuple[list[bool], list[bool]]:
    """Which parameters of generator and discriminator a step changes."""
    parts = (list(training.generator.parameters()), list(training.discriminator.parameters()))
    before = [[p.detach().clone() for p in part] for part in parts]
    getattr(training, step)()
    generator, discriminator = (
        [not p.equal(old) for p, old in zip(part, olds)] for part, olds in zip(parts, before)
    )
    return generator, discriminator


def test_each_step_moves_its_own_networks_and_no_other(training):
    """After steps of both kinds, so that momentum, which moved resting parameters in the reference, is there."""
    for _ in range(2):
        training.generator_step()
        training.discriminator_step()
    generator, discriminator = moved(training, "generator_step")
    assert all(generator)
    assert not any(discriminator)
    generator, discriminator = moved(training, "discriminator_step")
    assert not any(generator)
    assert all(discriminator)


def test_generator_gradients_are_those_of_the_formula():
    """L_gen written out with dense matrices and without dropout, at weights λ that tell its terms apart."""
    method = sat(model_dropout=0.0, lambda_r=2.0, lambda_c=3.0, lambda_g=5.0)
    t = Training(method, incomplete(), CONTEXT)
    x = torch.from_numpy(known(t, incomplete()))
    z_x, z_a = t.generator.attributes(None), t.generator.structure(None)

    def words(z):
        logits = t.generator.decode_features(z, None)
        return F.binary_cross_entropy_with_logits(logits, x, pos_weight=torch.tensor(t.weight))

    def links(z, loss):
        q = t.generator.decode_links(z, None)
        crow, column = loss.pattern._crow, loss.pattern._col
        row = torch.repeat_interleave(torch.arange(len(crow) - 1), crow.diff())
        return F.binary_cross_entropy_with_logits((q @ q.T)[row, column], loss.target)

    def fooled(z):
        return -F.logsigmoid(t.discriminator(z, None)).mean()

    z_t = z_a[t.learned]
    own = words(z_x) + links(z_a, t.all_pairs)
    cross = words(z_t) + links(z_x, t.learned_pairs)
    loss = 2 * own + 3 * cross + 5 * (fooled(z_x) + fooled(z_t))
    expected = torch.autograd.grad(loss, list(t.generator.parameters()))
    t.generator_step()
    for parameter, grad in zip(t.generator.parameters(), expected):
        torch.testing.assert_close(parameter.grad, grad, atol=1e-5, rtol=1e-4)


def test_discriminator_gradients_are_those_of_the_public_code():
    """It means over real and fake logits together, once for z_x and once for z_a, so each kind counts one half."""
    t = Training(sat(model_dropout=0.0, lambda_g=5.0), incomplete(), CONTEXT)
    state = t.noise.generator.get_state()
    with torch.no_grad():
        z_x, z_t = t.generator.attributes(None), t.generator.structure(None)[t.learned]
    real = torch.empty_like(z_x).normal_(generator=t.noise.generator)
    t.noise.generator.set_state(state)
    loss = 0
    for fake in (z_x, z_t):
        logits = torch.cat([t.discriminator(real, None), t.discriminator(fake, None)]).flatten()
        target = torch.cat([torch.ones(len(real)), torch.zeros(len(fake))])
        loss = loss + 5 * F.binary_cross_entropy_with_logits(logits, target)
    expected = torch.autograd.grad(loss, list(t.discriminator.parameters()))
    t.discriminator_step()
    for p, grad in zip(t.discriminator.parameters(), expected):
        torch.testing.assert_close(p.grad, grad)


def test_learns_words_from_links():
    """Recall@10 on nodes that nobody trained on, held out and missing alike: far above chance and the start."""
    graph = load_graph(group("data/synthetic", num_nodes=600, word_signal=0.6))
    observed = draw_observed(group("missing/type1"), 0.5, graph.features.shape, seed=0)
    training = Training(sat(width=64, latent=16), hide(graph, observed), CONTEXT)
    missing = np.flatnonzero(~observed.rows)
    truth = torch.from_numpy(graph.features[missing].toarray())
    at_start = recall(training.logits(missing), truth, 10)
    for _ in range(50):
        training.generator_step()
        training.generator_step()
        training.discriminator_step()
    assert at_start == pytest.approx(10 / 300, abs=0.02)  # chance
    assert recall(training.logits(missing), truth, 10) > 2 * at_start
    assert 1 - training.error() > 2 * at_start


def test_the_best_epoch_is_kept(monkeypatch):
    """Errors 3, 1, 2, 2, ...: what is filled in is the state of the second look, and patience ends it."""
    errors, calls = iter([3.0, 1.0, 2.0, 2.0, 2.0, 2.0]), []
    monkeypatch.setattr(Training, "error", lambda self: calls.append(1) or next(errors))
    long = sat(epochs=60, keep="best", evaluate_every=5, patience=10).impute(incomplete(), CONTEXT)
    assert len(calls) == 4
    errors, calls = iter([3.0, 1.0]), []
    short = sat(epochs=10, keep="best", evaluate_every=5, patience=None).impute(incomplete(), CONTEXT)
    np.testing.assert_array_equal(long, short)


def test_the_last_epoch_is_kept_unless_the_best_is_asked_for(monkeypatch):
    """Held-out nodes are not even looked at; with ``best`` they decide."""
    looks = []
    monkeypatch.setattr(Training, "error", lambda self: looks.append(1) or 0.1 * len(looks))
    graph = incomplete()
    last = sat(epochs=5, keep="last").impute(graph, CONTEXT)
    assert not looks
    best = sat(epochs=5, keep="best", evaluate_every=1).impute(graph, CONTEXT)
    assert len(looks) == 5
    first = sat(epochs=1, keep="last").impute(graph, CONTEXT)
    np.testing.assert_array_equal(best, first)
    assert np.abs(last - first).max() > 0
