"""What SAT fills in: on any number of observed nodes, words or numbers, and in the whole harness."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from pagnn_bench.baselines.sat import Training
from pagnn_bench.cli import main
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import Cell
from pagnn_bench.engine.execute import Executor, check_cell
from pagnn_bench.missing import Observed, hide
from tests.conftest import random_graph, random_observed
from tests.methods.sat_cases import CONTEXT, CPU, config, group, incomplete, sat


def test_divergence_is_an_error_and_not_a_fill():
    for keep in ("last", "best"):
        with pytest.raises(FloatingPointError, match="model_lr"):
            sat(model_lr=1e30, keep=keep).impute(incomplete(), CONTEXT)


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


def test_calibrated_or_not_share_one_cached_training(tmp_path):
    context = dataclasses.replace(CONTEXT, cache=tmp_path)
    for calibrated in (True, False):
        sat(calibrated=calibrated).impute(incomplete(), context)
    assert len(list(tmp_path.iterdir())) == 1


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
