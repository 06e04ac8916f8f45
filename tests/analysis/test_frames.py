"""Results as data frames."""

from __future__ import annotations

import pytest

from pagnn_bench.analysis.frames import cells, trials
from pagnn_bench.config.errors import RequestError
from pagnn_bench.records.store import Store
from tests.fabricate import make_cell, save_trials


def test_trials_and_cells(tmp_path):
    store = Store(tmp_path)
    save_trials(store, make_cell("mf"), lambda mask, seed: 70.0 + mask, masks=range(2), seeds=range(3))
    save_trials(store, make_cell("pagnn_n", method_={"hidden": 32}), lambda mask, seed: 80.0, masks=[0])
    save_trials(store, make_cell("mf", protocol="quick"), lambda mask, seed: 10.0, masks=[0], curve=True)
    frame = trials(tmp_path)
    assert len(frame) == 6 + 4 + 4
    assert "curve" not in frame
    means = frame[frame.protocol == "paper"].groupby("method").test_acc.mean()
    assert means.to_dict() == pytest.approx({"mf": 0.705, "pagnn_n[hidden=32]": 0.8})
    summary = cells(tmp_path).set_index(["protocol", "method"])
    assert summary.loc[("paper", "mf"), "mean"] == pytest.approx(70.5)
    assert summary.loc[("paper", "mf"), "n_masks"] == 2


def test_a_trial_that_was_trained_again_is_one_row(tmp_path):
    store, cell = Store(tmp_path), make_cell("mf")
    save_trials(store, cell, lambda mask, seed: 70.0, masks=[0], seeds=[0, 1])
    record = {"seed": 0, "status": "ok", "test_acc": 0.9, "val_acc": 0.7, "val_loss": 0.9, "best_epoch": 1}
    store.save(cell, 0, [record | {"epochs": 2}], {"stack": 1}, {}, store.next_generation(cell))
    assert trials(tmp_path).set_index("seed").test_acc.to_dict() == {0: 0.9, 1: 0.7}


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(RequestError, match="no such folder"):
        trials(tmp_path / "none")
