"""SAT: each step moves its own networks only, it learns words from links, and what it fills in."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from omegaconf import OmegaConf

from pagnn_bench.baselines.sat import SAT, Training
from pagnn_bench.baselines.sat_model import recall
from pagnn_bench.cli import main
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import Cell
from pagnn_bench.data import load_graph
from pagnn_bench.engine.execute import Executor, check_cell
from pagnn_bench.methods import build_method
from pagnn_bench.methods.base import Context
from pagnn_bench.missing import Observed, draw_observed, hide
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.propagate import symmetric_operator
from tests.conftest import random_graph, random_observed

CPU = torch.device("cpu")
CONTEXT = Context(seed=3, device=CPU)
CONF = Path(__file__).parents[2] / "conf"


def group(name: str, **keys):
    config = OmegaConf.merge(OmegaConf.load(CONF / f"{name}.yaml"), keys)
    return {key: value for key, value in OmegaConf.to_container(config).items() if key != "defaults"}


def config(**keys):
    """The method's own YAML, with the keys of the GCN and a model small enough for a test."""
    small = {
        "width": 24,
        "latent": 8,
        "epochs": 12,
        "hidden": 8,
        "dropout": 0.5,
        "input_dropout": "post",
        "bias": True,
    }
    return group("method/sat", **{**small, **keys})


def sat(**keys) -> SAT:
    method = build_method(config(**keys))
    assert isinstance(method, SAT)
    return method


def known(training: Training, graph) -> np.ndarray:
    """X_T."""
    return graph.features.toarray()[training.learned]


def incomplete(nodes: int = 60, rate: float = 0.4, seed: int = 0, **changes):
    graph = dataclasses.replace(random_graph(nodes=nodes), **changes)
    return hide(graph, random_observed(graph, "rows", rate, seed))


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


# Training


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


def test_divergence_is_an_error_and_not_a_fill():
    for keep in ("last", "best"):
        with pytest.raises(FloatingPointError, match="model_lr"):
            sat(model_lr=1e30, keep=keep).impute(incomplete(), CONTEXT)


# What it fills in


def test_observed_rows_are_untouched_and_the_rest_are_probabilities():
    graph = incomplete()
    filled = sat().impute(graph, CONTEXT)
    rows = graph.observed.rows
    np.testing.assert_array_equal(filled[rows], graph.features.toarray()[rows])
    assert ((filled[~rows] > 0) & (filled[~rows] < 1)).all()


def test_the_seed_decides():
    graph = incomplete()
    state = torch.get_rng_state()
    first, again = (sat().impute(graph, CONTEXT) for _ in range(2))
    other = sat().impute(graph, dataclasses.replace(CONTEXT, seed=4))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.01
    assert torch.get_rng_state().equal(state)  # and nothing is drawn from the generator that all share


def test_hidden_values_and_labels_do_not_matter():
    whole, rows = random_graph(nodes=60), np.arange(60) % 3 > 0
    spoiled = whole.features.toarray()
    spoiled[~rows] = np.nan
    graphs = [
        whole,
        dataclasses.replace(whole, features=sp.csr_array(spoiled), labels=1 - whole.labels.clip(0, 1)),
    ]
    fills = [sat().impute(hide(g, Observed(g.features.shape, rows=rows)), CONTEXT) for g in graphs]
    np.testing.assert_array_equal(*fills)


def test_calibration_takes_the_weight_of_ones_back():
    """p = w q / (w q + 1 - q) is what weighted ones make of a probability q."""
    graph = incomplete()
    weight = Training(sat(), graph, CONTEXT).weight
    raw, q = (sat(calibrated=c).impute(graph, CONTEXT)[~graph.observed.rows] for c in (False, True))
    assert raw == pytest.approx(weight * q / (weight * q + 1 - q), abs=2e-3)  # both are in half precision
    known = graph.features.sum() / (graph.observed.rows.sum() * graph.features.shape[1])
    assert q.mean() == pytest.approx(known, rel=0.5)


@pytest.mark.parametrize("observed", [0, 1, 2, 59, 60])
def test_any_number_of_observed_nodes(observed):
    whole = random_graph(nodes=60)
    rows = np.zeros(60, dtype=bool)
    rows[:observed] = True
    if observed == 0:  # one is always left, here the isolated node
        rows[-1] = True
    graph = hide(whole, Observed(whole.features.shape, rows=rows))
    filled = sat(epochs=6).impute(graph, CONTEXT)
    values = filled if isinstance(filled, np.ndarray) else filled.toarray()
    assert np.isfinite(values).all()
    np.testing.assert_array_equal(values[rows], whole.features.toarray()[rows])


def test_nothing_is_trained_where_nothing_is_missing(monkeypatch):
    monkeypatch.setattr(Training, "__init__", None)
    graph = incomplete(rate=0.0)
    assert (sat().impute(graph, CONTEXT) != graph.features).nnz == 0


def test_rows_without_any_word():
    """Neither the weight of ones nor the recall has anything to count; the loss takes over."""
    graph = incomplete(features=sp.csr_array((60, 12), dtype=np.float32))
    training = Training(sat(), graph, CONTEXT)
    assert training.weight == 1
    assert not training.by_recall
    assert np.isfinite(sat(epochs=6).impute(graph, CONTEXT)).all()


def test_features_that_are_not_binary_come_back_in_their_own_units():
    rng = np.random.default_rng(0)
    values = rng.normal(50, 10, size=(60, 12)).astype(np.float32)
    values[:, 3] = -7  # a constant column
    graph = incomplete(features=sp.csr_array(values))
    rows = graph.observed.rows
    filled = sat(epochs=60, model_lr=0.01).impute(graph, CONTEXT)
    np.testing.assert_array_equal(filled[rows], values[rows])
    span = values[rows].min(axis=0), values[rows].max(axis=0)
    others = np.arange(12) != 3
    assert (filled[~rows][:, others] >= span[0][others] - 0.1).all()
    assert (filled[~rows][:, others] <= span[1][others] + 0.1).all()
    assert filled[~rows][:, others].mean() == pytest.approx(50, abs=5)
    training = Training(sat(), graph, CONTEXT)
    assert training.weight == 1
    assert not training.by_recall


@pytest.mark.parametrize("rate", [0.0, 0.5, 0.99])
def test_in_the_whole_harness(rate, tmp_path):
    cell = Cell(
        method=config(epochs=4),
        data=group("data/synthetic", num_nodes=300, num_val=60),
        missing=group("missing/type1"),
        protocol=group("protocol/shared", weight_decay=0.005, max_epochs=10),
        rate=rate,
    )
    check_cell(cell)
    said: list[str] = []

    class Watch:
        def report(self, text):
            said.append(text)

        def epoch(self, epoch, finished):
            pass

    first, second = (Executor(CPU, cache=tmp_path).run(cell, 0, [0, 1], Watch()) for _ in range(2))
    assert [record["status"] for record in first.records] == ["ok", "ok"]
    assert first.records == second.records
    # The second is from the file.
    assert said == ([] if rate == 0 else [f"SAT {epoch}/4" for epoch in (1, 2, 3, 4)])
    assert ("impute_rmse" in first.facts) == (rate > 0)


def test_type_2_is_refused_with_the_reason(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "method=sat", "data=synthetic", "missing=type2", "masks=1", "seeds=1"]) == 2
    said = capsys.readouterr().err.strip()
    assert said.count("\n") == 0
    assert "method=sat is not defined for missing=type2: SAT completes nodes" in said
    assert "missing=type1" in said
    whole = random_graph(nodes=60)
    with pytest.raises(ValueError, match="SAT completes nodes"):
        sat().impute(hide(whole, random_observed(whole, "cells")), CONTEXT)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("width", 0),
        ("latent", 1.5),
        ("model_dropout", 1),
        ("model_lr", 0),
        ("model_weight_decay", -1),
        ("lambda_g", "much"),
        ("n_gene", 0),
        ("epochs", 0),
        ("held_out", 1),
        ("evaluate_every", True),
        ("patience", 0),
        ("calibrated", "yes"),
    ],
)
def test_a_wrong_value_names_its_key(key, value):
    with pytest.raises(RequestError, match=f"method.{key}={value}: "):
        sat(**{key: value})


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


def test_calibrated_or_not_share_one_cached_training(tmp_path):
    context = dataclasses.replace(CONTEXT, cache=tmp_path)
    for calibrated in (True, False):
        sat(calibrated=calibrated).impute(incomplete(), context)
    assert len(list(tmp_path.iterdir())) == 1
