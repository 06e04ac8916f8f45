"""What every method gives to take home, on every file of conf/method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import fold_training
from pagnn_bench.engine.applying import Application, accuracy, apply_cell, as_module, largest_difference
from pagnn_bench.engine.outcome import Unfinished
from pagnn_bench.engine.prepare import hide_mask
from pagnn_bench.records.store import Store
from tests.methods.test_all_methods import CPU, METHODS, config, run

# Their networks are no chain of layers that torch_geometric or pagnn_bench.nn has.
OWN_NETWORKS = {"gcnmf", "pagcn", "label_prop", "goodie", "d2pt"}
NO_HIDDEN_LAYER = {"label_prop", "goodie", "d2pt"}  # none, or several of which none is the last


def configured(name: str, folder: Any, **keys: Any) -> dict[str, Any]:
    """As :func:`run` trains it, for :func:`apply_cell`."""
    given = {"rate": 0.3, "masks": 1, "seeds": 2, "device": "cpu", "results_dir": str(folder), "cache": False}
    return fold_training({**config(name), **given, **keys})


@pytest.mark.parametrize("name", METHODS)
def test_every_method(name, tmp_path):
    made = apply_cell(configured(name, tmp_path), best=2)
    records = run(name, (0, 1))
    nodes, classes = made.graph.num_nodes, made.graph.num_classes
    for seed, record in enumerate(records):
        # Nothing but the rows of the test nodes is evaluated besides: the trial is the ordinary one.
        assert made.records[seed] == record
        found = made.probabilities[seed]
        assert found.shape == (nodes, classes)
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)
        assert accuracy(found, made.graph.labels, made.graph.split.test) == pytest.approx(record["test_acc"])
        assert accuracy(found, made.graph.labels, made.graph.split.val) == pytest.approx(record["val_acc"])
    order = sorted((0, 1), key=lambda seed: (-records[seed]["val_acc"], records[seed]["val_loss"]))
    assert [network.seed for network in made.best] == order
    assert {(trial.mask, trial.seed) for trial in Store(tmp_path).load(made.cell).values()} == {
        (0, 0),
        (0, 1),
    }
    assert (made.portable is None) == (name in OWN_NETWORKS)
    if made.portable is not None:
        assert max(largest_difference(made.portable, network) for network in made.best) < 1e-5
    check_hidden(name, made)
    check_completed(name, made)


def check_hidden(name: str, made: Application) -> None:
    """The last layer makes the logits of the hidden layer."""
    for network in made.best:
        if name in NO_HIDDEN_LAYER:
            assert network.hidden is None
            continue
        assert network.hidden is not None
        assert network.hidden.shape == (made.graph.num_nodes, made.cell.method["hidden"])
        if made.portable is None:
            continue
        module, given = as_module(made.portable, network.state), made.portable.inputs()
        hidden = torch.from_numpy(network.hidden)
        with torch.no_grad():
            if "edge_index" in given:
                logits = list(module.convs)[-1](hidden, torch.from_numpy(given["edge_index"]))
            else:
                logits = list(module.lins)[-1](hidden)
        np.testing.assert_allclose(logits, network.logits, atol=1e-4)


def check_completed(name: str, made: Application) -> None:
    if made.why_not:
        assert made.completed is None
        return
    completed, observed = made.completed, hide_mask(made.cell, 0, CPU).graph.observed.dense()
    assert completed is not None
    np.testing.assert_array_equal(completed.observed, observed)
    truth = made.graph.features.toarray()
    np.testing.assert_array_equal(completed.values[observed], truth[observed])
    assert completed.filled_in == (~observed).sum()
    if name == "zero":
        assert not completed.values[~observed].any()


def test_methods_that_fill_in_nothing_say_so(tmp_path):
    reasons = {
        name: apply_cell(configured(name, tmp_path, seeds=1), best=1).why_not for name in ("pagnn_n", "full")
    }
    assert reasons == {
        "pagnn_n": "pagnn_n works without filling in attributes",
        "full": "full is shown the hidden attributes and fills in nothing",
    }
    normed = configured("mf", tmp_path, seeds=1)
    normed["protocol"] = {**normed["protocol"], "feature_norm": "row"}
    assert apply_cell(normed, best=1).why_not.startswith(
        "protocol.feature_norm=row divides every row by its sum"
    )


@pytest.mark.parametrize("network", ["sage", "gat", "torch_geometric.nn.GCN"])
def test_another_network_behind_a_filling(network, tmp_path):
    given = configured("mf", tmp_path)
    made = apply_cell({**given, "method": {**given["method"], "network": network}}, best=1)
    assert made.portable is not None
    assert largest_difference(made.portable, made.best[0]) < 1e-5
    hidden = made.best[0].hidden
    assert hidden is not None
    assert hidden.shape == (made.graph.num_nodes, made.cell.method["hidden"])
    assert made.completed is not None


def test_three_layers_and_a_mask_update(tmp_path):
    """Of three layers the embedding is the second; where layer 2 passes nodes over, some have none."""
    given = configured("pagnn_m", tmp_path, seeds=1)
    deep = apply_cell({**given, "method": {**given["method"], "layers": 3}}, best=1)
    assert deep.portable is not None
    assert largest_difference(deep.portable, deep.best[0]) < 1e-5
    check_hidden("pagnn_m", deep)
    strict = apply_cell({**given, "rate": 0.99, "method": {**given["method"], "mask_update": True}}, best=1)
    assert strict.portable is None
    assert strict.best[0].hidden is None


def test_what_is_recorded_is_trained_again_and_compared(tmp_path):
    first = apply_cell(configured("mf", tmp_path, seeds=1), best=1)
    assert first.recorded == {}
    again = apply_cell(configured("mf", tmp_path, seeds=[0, 4]), best=1)
    assert again.recorded.keys() == {0}
    assert again.records[0] == first.records[0] == again.recorded[0]
    assert len(list(tmp_path.glob("cells/*/mask*.json"))) == 2  # one for each command, and none written twice


def test_settings_are_searched_first(tmp_path):
    given = configured("mf", tmp_path, seeds=1)
    tuning = {"budget": 2, "mask": 1000, "seeds": 1, "space": {"protocol.lr": [0.01, 0.1]}}
    made = apply_cell({**given, "protocol": {**given["protocol"], "name": "tuned", "tuning": tuning}}, best=1)
    assert made.cell.protocol["tuning"]["chosen"] == {"protocol.lr": made.cell.protocol["lr"]}


def test_a_training_that_breaks_off(tmp_path, monkeypatch):
    given = configured("gain", tmp_path, seeds=1)
    monkeypatch.setattr("pagnn_bench.baselines.gain.GAIN.learn", lambda *given: 1 / 0)
    with pytest.raises(Unfinished, match=r"gain on synthetic, type1, rate 0\.3: ZeroDivisionError"):
        apply_cell(given, best=1)
    assert len(list(tmp_path.glob("cells/*/*.failed.json"))) == 1
    diverged = configured("mf", tmp_path, seeds=1)
    diverged["protocol"] = {**diverged["protocol"], "lr": 1e30}
    with pytest.raises(
        Unfinished, match=r"no training of mf on synthetic.*the loss was no longer a finite number"
    ):
        apply_cell(diverged, best=1)


def test_wrong_requests(tmp_path):
    wrong = {"masks": 3, "n_jobs": 2, "dry_run": True}
    sentences = (
        "masks: apply works on one incomplete graph, not on 3",
        "n_jobs=2: apply trains in this process",
        "dry_run=true: apply has no plan",
    )
    for (key, value), sentence in zip(wrong.items(), sentences, strict=True):
        with pytest.raises(RequestError, match=f"^{sentence}"):
            apply_cell(configured("mf", tmp_path, **{key: value}), best=1)
    assert list(tmp_path.iterdir()) == []


def test_a_mean_of_what_is_filled_in_for_every_seed(tmp_path):
    """GAIN per seed: the completed attributes are the mean of those of seed 0 and seed 1."""
    given = configured("gain", tmp_path)
    given["method"] = {**given["method"], "per_seed": True}
    both, *single = (apply_cell({**given, "seeds": seeds}, best=1).completed for seeds in ([0, 1], [0], [1]))
    values = [each.values for each in single if each is not None]
    assert both is not None
    assert not np.allclose(values[0], values[1])
    np.testing.assert_allclose(both.values, np.mean(values, axis=0), atol=1e-5)
