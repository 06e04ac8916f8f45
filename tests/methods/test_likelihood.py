"""Imputation models on columns of numbers: another likelihood, in the scale of the column, and words as before."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
import torch.nn.functional as F

from pagnn_bench.baselines.gain import GAIN, Score
from pagnn_bench.baselines.sat import SAT
from pagnn_bench.baselines.sat_model import FeatureLoss
from pagnn_bench.baselines.vae import VAE, Network
from pagnn_bench.data.graph import Graph
from pagnn_bench.methods.base import Context
from pagnn_bench.methods.learning import UnitRange
from pagnn_bench.methods.likelihood import Likelihood, ModelScale
from pagnn_bench.missing import Observed, hide
from tests.conftest import random_graph

CONTEXT = Context(seed=0, device=torch.device("cpu"))
GCN = {"hidden": 4, "dropout": 0.5, "input_dropout": "post", "bias": True, "per_seed": False}
WORDS = np.array([True, False, True, False])


def vae(**keys) -> VAE:
    settings = {"width": 32, "latent": 6, "model_dropout": 0.0, "model_lr": 0.01, "batch": 64, "epochs": 60}
    return VAE(**{**settings, "patience": 30, "held_out": 0.05, **GCN, **keys})


def gain(**keys) -> GAIN:
    settings = {"width": 64, "iterations": 2000, "patience": 500, "held_out": 0.05, "batch": 64, "alpha": 100}
    return GAIN(**{**settings, "hint_rate": 0.9, "model_lr": 0.001, "round": False, **GCN, **keys})


def sat(**keys) -> SAT:
    weights = {
        "lambda_r": 1.0,
        "lambda_c": 10.0,
        "lambda_g": 1.0,
        "n_gene": 2,
        "n_disc": 1,
        "model_weight_decay": 0.0,
    }
    settings = {
        "width": 32,
        "latent": 8,
        "model_dropout": 0.2,
        "model_lr": 0.01,
        "epochs": 150,
        "keep": "last",
    }
    rest = {"held_out": 0.1, "evaluate_every": 1, "patience": None, "calibrated": True}
    return SAT(**{**weights, **settings, **rest, **GCN, **keys})


def mixed_graph(shift: float = 0.0, scale: float = 1.0) -> Graph:
    """Six columns of numbers that follow the class of a node and its neighbourhood, and three of words."""
    graph = random_graph(nodes=240, features=6)
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(3, 6))
    numbers = centres[graph.labels] + 0.3 * rng.normal(size=(240, 6))
    numbers[:, 0] = np.exp(numbers[:, 0])  # a skewed one
    words = (rng.random((240, 3)) < np.where(np.eye(3)[graph.labels] > 0, 0.9, 0.1)).astype(float)
    features = np.hstack([scale * numbers + shift, words]).astype(np.float32)
    return dataclasses.replace(graph, features=sp.csr_array(features))


def masks(pattern: str) -> Observed:
    rng = np.random.default_rng(2)
    if pattern == "rows":
        return Observed((240, 9), rows=rng.random(240) < 0.6)
    return Observed((240, 9), cells=rng.random((240, 9)) < 0.6)


def test_numbers_are_standardised_and_words_are_left():
    features = np.array([[1, 10, 0, 5], [0, 30, 1, 5], [1, 99, 0, 5], [7, 20, 7, 5]], dtype=np.float32)
    cells = np.ones((4, 4), dtype=bool)
    cells[3, [0, 2]], cells[2, 1] = False, False  # what would make numbers of words is hidden
    graph = random_graph(nodes=4, features=4)
    graph = hide(dataclasses.replace(graph, features=sp.csr_array(features)), Observed((4, 4), cells=cells))
    scale = ModelScale.of(graph)
    assert scale.words.tolist() == [True, False, True, False]
    np.testing.assert_allclose(scale.scaled(graph)[:, 1], [-1.2247449, 1.2247449, 0, 0], rtol=1e-6)
    np.testing.assert_array_equal(scale.scaled(graph)[:, 2], [0, 1, 0, 0])
    back = scale.restored(np.full((4, 4), 2, dtype=np.float32))
    np.testing.assert_allclose(back[0], [2, 20 + 2 * 8.164966, 2, 5], rtol=1e-6)  # a constant stays itself


def test_each_kind_has_its_own_loss():
    rng = torch.Generator().manual_seed(0)
    out, x = (torch.randn(5, 4, generator=rng) for _ in range(2))
    x[:, [0, 2]] = (x[:, [0, 2]] > 0).float()
    keep = torch.rand(5, 4, generator=rng) < 0.5
    total = torch.zeros(())
    for i in range(5):
        for j in range(4):
            word = F.binary_cross_entropy_with_logits(out[i, j], x[i, j])
            total += keep[i, j] * (word if WORDS[j] else (x[i, j] - out[i, j]) ** 2 / 2)
    likelihood = Likelihood(WORDS)
    torch.testing.assert_close(likelihood.loss(out, x, keep), total)
    torch.testing.assert_close(likelihood.surprise(out, x, keep), total)
    torch.testing.assert_close(likelihood.mean(out)[:, [1, 3]], out[:, [1, 3]])
    torch.testing.assert_close(likelihood.mean(out)[:, [0, 2]], torch.sigmoid(out[:, [0, 2]]))
    # SAT's form of it: the gradient of the mean, where ones weigh three times as much.
    logits = out.clone().requires_grad_()
    (grad,) = torch.autograd.grad(FeatureLoss(x, 3.0, likelihood)(logits), logits)
    weight = torch.where(torch.from_numpy(WORDS) & (x == 1), 3.0, 1.0)
    (naive,) = torch.autograd.grad(likelihood.loss(logits, x, weight) / 20, logits)
    torch.testing.assert_close(grad, naive)


def test_the_vae_trains_on_this_loss():
    rng = torch.Generator().manual_seed(0)
    x, m, eps = torch.randn(3, 4, generator=rng), torch.ones(3, 4), torch.zeros(3, 2)
    x[:, [0, 2]] = 1
    model = Network(4, 6, 2, rng, Likelihood(WORDS))
    mean, log_variance = model.encode(x)
    divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum()
    expected = (model.likelihood.loss(model(x), x, m) + divergence) / 3
    torch.testing.assert_close(model.loss(x, m, eps), expected)


def test_gain_judges_numbers_by_their_deviation():
    incomplete = hide(mixed_graph(), masks("cells"))
    unit = UnitRange.of(incomplete)
    score = Score.of(incomplete, unit, torch.device("cpu"))
    x, known = torch.from_numpy(unit.scaled(incomplete)), torch.from_numpy(incomplete.observed.dense())
    numbers = known.clone()
    numbers[:, 6:] = False
    # The mean of a column is half a variance off on average, whatever the column's range.
    means = (x.sum(dim=0) / known.sum(dim=0)).expand_as(x)
    assert score(means, x, numbers) == pytest.approx(0.5, rel=1e-3)


def test_gain_does_not_judge_by_what_is_no_number():
    """Not even where nothing is judged: with numbers among the columns, the loss of every entry is computed."""
    incomplete = hide(mixed_graph(), masks("cells"))
    unit = UnitRange.of(incomplete)
    x, judged = torch.from_numpy(unit.scaled(incomplete)), torch.from_numpy(incomplete.observed.dense())
    p = torch.where(judged, x, torch.nan)
    assert math.isnan(Score.of(incomplete, unit, torch.device("cpu"))(p, x, judged))


@pytest.mark.parametrize(("method", "pattern"), [(vae, "cells"), (gain, "cells"), (sat, "rows")])
def test_numbers_and_words_are_recovered_better_than_by_their_means(method, pattern):
    graph, observed = mixed_graph(), masks(pattern)
    filled = method().impute(hide(graph, observed), CONTEXT)
    hidden, truth = ~observed.dense(), graph.features.toarray()
    means = truth.mean(axis=0, where=~hidden)
    for columns in (slice(0, 6), slice(6, 9)):
        error, least = (
            np.sqrt(((guess - truth)[:, columns][hidden[:, columns]] ** 2).mean())
            for guess in (filled, means)
        )
        assert error < 0.9 * least
    assert filled[:, 6:].min() >= 0
    assert filled[:, 6:].max() <= 1


@pytest.mark.parametrize(("method", "pattern"), [(vae, "cells"), (sat, "rows")])
def test_the_unit_of_a_number_plays_no_part(method, pattern):
    observed = masks(pattern)
    short = {"epochs": 5}
    one = method(**short).impute(hide(mixed_graph(), observed), CONTEXT)
    other = method(**short).impute(hide(mixed_graph(shift=-30, scale=8), observed), CONTEXT)
    np.testing.assert_allclose(other[:, :6], 8 * one[:, :6] - 30, atol=0.05)
    np.testing.assert_allclose(other[:, 6:], one[:, 6:], atol=2e-3)
