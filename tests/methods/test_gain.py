"""GAIN: both losses by hand, training against a plain loop, rounding, and structure found where there is some."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from pagnn_bench.baselines import gain as module
from pagnn_bench.baselines.gain import GAIN, Game, perceptron, rounded
from pagnn_bench.baselines.mf import MeanFilling
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import seed_for
from pagnn_bench.methods.imputation import imputation_error
from pagnn_bench.missing import Observed, draw_observed, hide
from pagnn_bench.nn.noise import Noise
from tests.conftest import random_graph, random_observed
from tests.methods.learners import (
    GCN,
    PATTERNS,
    check_seed_decides,
    context,
    fill_words,
    shipped,
    topic_graph,
)

FAST = {"width": 16, "iterations": 20}


def gain(**changes: Any) -> GAIN:
    return GAIN(**shipped("gain", changes))


@pytest.fixture
def incomplete():
    graph = random_graph(nodes=60)
    return hide(graph, random_observed(graph, "cells", 0.4))


def forward(network, inputs: np.ndarray) -> np.ndarray:
    """A perceptron of three layers by hand, for one node."""
    parameters = [p.detach().double().numpy() for p in network.parameters()]
    for k in (0, 2):
        inputs = np.maximum(parameters[k] @ inputs + parameters[k + 1], 0)
    return 1 / (1 + np.exp(-(parameters[4] @ inputs + parameters[5])))


def players(features: int, width: int, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    return [perceptron(features, width, generator) for _ in range(2)]


def test_both_losses_by_hand():
    """Node by node and entry by entry, with plain numpy."""
    rng = np.random.default_rng(0)
    n, d, alpha = 6, 5, 7.0
    m = (rng.random((n, d)) < 0.6).astype(np.float32)
    x = (rng.random((n, d)) * m).astype(np.float32)
    hint = m * (rng.random((n, d)) < 0.9)
    generator, discriminator = players(d, 4)
    game = Game(generator, discriminator, alpha, Noise(9, torch.device("cpu")))
    tensors = [torch.from_numpy(a.astype(np.float32)) for a in (x, m, hint)]
    guess = game.generate(tensors[0], tensors[1])
    z = 0.01 * torch.rand((n, d), generator=torch.Generator().manual_seed(9)).double().numpy()
    loss_d = adversarial = squared = 0.0
    for i in range(n):
        g = forward(generator, np.concatenate([m[i] * x[i] + (1 - m[i]) * z[i], m[i]]))
        np.testing.assert_allclose(guess[i].detach(), g, rtol=1e-5)
        p = forward(discriminator, np.concatenate([m[i] * x[i] + (1 - m[i]) * g, hint[i]]))
        for f in range(d):
            if m[i, f]:
                loss_d -= np.log(p[f] + 1e-8)
                squared += (x[i, f] - g[f]) ** 2
            else:
                loss_d -= np.log(1 - p[f] + 1e-8)
                adversarial -= np.log(p[f] + 1e-8)
    assert game.discriminator_loss(*tensors, guess).item() == pytest.approx(loss_d / (n * d), rel=1e-5)
    expected = adversarial / (n * d) + alpha * (squared / (n * d)) / m.mean()
    assert game.generator_loss(*tensors, guess).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_training_equals_a_plain_loop(pattern, monkeypatch):
    """One step of D, then one of G with a pass through G of its own, the same random numbers: the same weights."""
    graph = random_graph(nodes=60)
    graph = hide(graph, random_observed(graph, pattern, 0.4))
    games = []
    start = Game.__init__

    def spy(self, generator, discriminator, **rest):
        games.append((copy.deepcopy(generator), copy.deepcopy(discriminator), self))
        start(self, generator, discriminator, **rest)

    monkeypatch.setattr(Game, "__init__", spy)
    method = gain(width=8, iterations=5, batch=16, held_out=0.0, alpha=3.0)
    method.learn(graph, context(seed=4))
    ((g, d, game),) = games

    order = torch.Generator().manual_seed(seed_for("weights and order", seed=4))
    for _ in range(2):  # the players' weights come first from this stream
        perceptron(graph.features.shape[1], 8, order)
    noise = torch.Generator().manual_seed(seed_for("noise", seed=4))
    adam_g, adam_d = (torch.optim.Adam(net.parameters(), lr=1e-3) for net in (g, d))
    x = torch.from_numpy(graph.features.toarray())
    known = torch.from_numpy(graph.observed.dense().copy()).float()
    for _ in range(5):
        batch = torch.randperm(60, generator=order)[:16]
        rows, m = x[batch], known[batch]
        hint = m * (torch.rand(m.shape, generator=noise) < 0.9)
        z = 0.01 * torch.rand(m.shape, generator=noise)
        inputs = torch.cat([m * rows + (1 - m) * z, m], dim=1)
        adam_d.zero_grad()
        p = d(torch.cat([m * rows + (1 - m) * g(inputs).detach(), hint], dim=1))
        (-(m * torch.log(p + 1e-8) + (1 - m) * torch.log(1 - p + 1e-8)).mean()).backward()
        adam_d.step()
        adam_g.zero_grad()
        guess = g(inputs)
        p = d(torch.cat([m * rows + (1 - m) * guess, hint], dim=1))
        error = ((m * rows - m * guess) ** 2).mean() / m.mean()
        (-((1 - m) * torch.log(p + 1e-8)).mean() + 3.0 * error).backward()
        adam_g.step()
    for ours, plain in ((game.generator, g), (game.discriminator, d)):
        for one, other in zip(ours.parameters(), plain.parameters()):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_weights_have_the_variance_of_the_authors():
    first = perceptron(500, 300, torch.Generator().manual_seed(0))[0]
    assert first.weight.shape == (300, 1000)
    assert first.weight.std().item() == pytest.approx((2 / 1000) ** 0.5, rel=0.02)
    assert not first.bias.any()


def test_a_batch_without_any_observed_entry_has_finite_losses_and_gradients():
    game = Game(*players(5, 4), alpha=100.0, noise=Noise(0, torch.device("cpu")))
    nothing = torch.zeros(3, 5)
    guess = game.generate(nothing, nothing)
    game.generator_loss(nothing, nothing, nothing, guess).backward()
    for parameter in game.generator.parameters():
        assert torch.isfinite(parameter.grad).all()


def test_held_out_entries_are_hidden_from_both_players(incomplete, monkeypatch):
    seen = []
    for name in ("discriminator_loss", "generator_loss"):
        plain = getattr(Game, name)

        def spy(self, x, m, hint, guess, plain=plain):
            seen.append((x.clone(), m.clone(), hint.clone()))
            return plain(self, x, m, hint, guess)

        monkeypatch.setattr(Game, name, spy)
    gain(**FAST | {"iterations": 1, "held_out": 0.3, "batch": 1000, "hint_rate": 0.8}).learn(
        incomplete, context()
    )
    known = int(incomplete.observed.dense().sum())
    assert len(seen) == 2
    for x, m, hint in seen:
        assert m.sum().item() == pytest.approx(0.7 * known, rel=0.1)
        assert hint.sum().item() == pytest.approx(0.8 * m.sum().item(), rel=0.1)
        assert (hint[m == 0] == 0).all()
        assert (x[m == 0] == 0).all()
        assert 0 < x.count_nonzero().item() < incomplete.features.nnz


def test_it_stops_by_itself_and_keeps_the_best_generator(incomplete, monkeypatch):
    monkeypatch.setattr(module, "CHECK_EVERY", 2)
    scores = iter([5.0, 4.0, 6.0, 6.0, 1.0])
    plain = module.BestWeights.is_over
    monkeypatch.setattr(
        module.BestWeights, "is_over", lambda self, score, step: plain(self, next(scores), step)
    )
    kept = []
    restore = module.BestWeights.restore

    def spy(self):
        restore(self)
        kept.append((self.step, copy.deepcopy(self.model.state_dict())))

    monkeypatch.setattr(module.BestWeights, "restore", spy)
    reports: list[str] = []
    gain(**FAST | {"patience": 4}).learn(incomplete, context(report=reports.append))
    assert reports == [f"GAIN {iteration}/20" for iteration in range(1, 9)]
    scores = iter([5.0, 4.0])
    gain(**FAST | {"iterations": 4}).learn(incomplete, context())
    (step, weights), (_, shorter) = kept
    assert step == 4
    for name, value in weights.items():
        torch.testing.assert_close(value, shorter[name], atol=0, rtol=0)


def test_the_score_is_the_cross_entropy_of_the_held_out_entries(incomplete, monkeypatch):
    monkeypatch.setattr(module, "NOISE", 0.0)
    masks, scores, generators = [], [], []
    split, is_over = module.hold_out, module.BestWeights.is_over

    def spy(self, score, step):
        scores.append(score)
        generators.append(copy.deepcopy(self.model))
        return is_over(self, score, step)

    monkeypatch.setattr(module, "hold_out", lambda *rest: masks.append(split(*rest)) or masks[-1])
    monkeypatch.setattr(module.BestWeights, "is_over", spy)
    gain(width=8, iterations=3, held_out=0.2).learn(incomplete, context())
    ((learned, held),), (score,), (generator,) = masks, scores, generators
    x, terms = incomplete.features.toarray(), []
    for i, f in np.argwhere(held):
        p = forward(generator, np.concatenate([x[i] * learned[i], learned[i]]))[f]
        terms.append(-np.log(p if x[i, f] else 1 - p))
    assert score == pytest.approx(np.mean(terms), rel=1e-5)


def test_a_generator_that_diverged_is_an_ordinary_failure(incomplete, monkeypatch):
    """On a GPU the loss of NaN is an assertion of the device, after which the process can train nothing more."""
    monkeypatch.setattr(GAIN, "_generate", lambda self, game, x, m: torch.full_like(x, torch.nan))
    monkeypatch.setattr(
        "torch.nn.functional.binary_cross_entropy",
        lambda *arguments: pytest.fail("asked for the loss of NaN"),
    )
    with pytest.raises(FloatingPointError, match="diverged in step 20"):
        gain(**FAST).learn(incomplete, context())


def test_fewer_iterations_than_a_check_still_train(incomplete):
    one, many = (gain(width=16, iterations=k).learn(incomplete, context()) for k in (1, 40))
    assert np.abs(one - many).max() > 0.01


def test_without_held_out_entries_it_trains_for_all_iterations(incomplete, monkeypatch):
    monkeypatch.setattr(module.BestWeights, "is_over", lambda *rest: pytest.fail("nothing to judge by"))
    reports: list[str] = []
    gain(**FAST | {"iterations": 150, "patience": 1, "held_out": 0.0}).learn(
        incomplete, context(report=reports.append)
    )
    assert reports[-1] == "GAIN 150/150"


def test_width_null_is_the_number_of_attributes_which_is_also_the_maximum(incomplete, monkeypatch):
    widths = []
    plain = module.perceptron
    monkeypatch.setattr(module, "perceptron", lambda d, h, g: widths.append((d, h)) or plain(d, h, g))
    for width in (None, 3, 500):
        gain(width=width, iterations=1).learn(incomplete, context())
    assert widths == [(12, 12)] * 2 + [(12, 3)] * 2 + [(12, 12)] * 2


def test_the_seed_decides_and_the_global_generators_are_left_alone(incomplete):
    check_seed_decides(lambda: gain(**FAST), incomplete)


@PATTERNS
@pytest.mark.parametrize("round_", [False, True])
def test_fills_with_probabilities_or_whole_numbers(pattern, rate, round_):
    """All nodes without attributes get the same row, up to the noise."""
    filled, known = fill_words(gain(**FAST, round=round_), pattern, rate)
    if rate < 0.9:  # at 0.99 all observed entries of a column are equal, and that value is filled in
        assert np.isin(filled[~known], (0, 1)).all() == round_
    blind = filled[~known.any(axis=1)]
    if not round_:  # rounding separates values on either side of 1/2, however close
        np.testing.assert_allclose(blind, np.repeat(blind[:1], len(blind), axis=0), atol=0.02)


def test_a_column_with_one_observed_value_is_filled_with_it():
    """As in the authors' code, where such a column has no span."""
    features = sp.csr_array(np.array([[1, 0, 1], [1, 0, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))
    graph = dataclasses.replace(random_graph(nodes=4), features=features)
    observed = Observed((4, 3), rows=np.array([True, True, True, False]))
    filled = gain(**FAST).impute(hide(graph, observed), context())
    assert filled[3, :2].tolist() == [1, 0]
    assert 0 < filled[3, 2] < 1


def test_only_columns_with_few_values_are_rounded():
    rng = np.random.default_rng(0)
    few, many = rng.integers(0, 19, (300, 1)), rng.integers(0, 20, (300, 1))  # 19 and 20 distinct values
    seen = np.where(many >= 15, 0, 1)  # of the third column's 20 values 15 are observed
    features = sp.csr_array(np.hstack([few, many, many]).astype(np.float32))
    mask = Observed((300, 3), cells=np.hstack([np.ones((300, 2)), seen]).astype(bool))
    graph = random_graph(nodes=300, features=3)
    incomplete = hide(type(graph)(**{**vars(graph), "features": features}), mask)
    filled = np.full((300, 3), 0.7)
    np.testing.assert_array_equal(rounded(filled, incomplete)[0], [1, 0.7, 1])


def test_beats_mean_filling_where_words_have_topics():
    graph = topic_graph()
    observed = draw_observed({"pattern": "cells", "exact": False}, 0.3, graph.features.shape, seed=0)
    incomplete = hide(graph, observed)
    error = imputation_error(gain(patience=200).impute(incomplete, context()), graph.features, observed)
    means = imputation_error(MeanFilling(**GCN).impute(incomplete, context()), graph.features, observed)
    assert error["impute_rmse"] < 0.9 * means["impute_rmse"]
    assert error["impute_bce"] < 0.8 * means["impute_bce"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("width", 0),
        ("iterations", 0),
        ("patience", 1.5),
        ("held_out", 1),
        ("batch", -3),
        ("alpha", 0),
        ("hint_rate", 1.5),
        ("model_lr", "fast"),
        ("round", 1),
        ("hidden", 0),
    ],
)
def test_wrong_values_name_key_and_value(key, value):
    with pytest.raises(RequestError, match=f"method.{key}={value}: (give a|choose) "):
        gain(**{key: value})


def test_nothing_of_the_gcn_is_a_setting_of_the_model():
    keys = ("width", "iterations", "patience", "held_out", "batch", "alpha", "hint_rate", "model_lr")
    assert set(gain().settings()) == set(keys)
