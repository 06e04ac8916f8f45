"""TensorBoard scalars are an option; without the package it is one sentence."""

from __future__ import annotations

import sys

import pytest

from pagnn_bench.config.errors import RequestError
from pagnn_bench.engine.outcome import Outcome
from pagnn_bench.engine.plan import Batch
from pagnn_bench.engine.tensorboard import ScalarLog
from tests.records.common import CELL


def test_without_the_package(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(RequestError, match=r"pip install 'pagnn-bench\[tensorboard\]'"):
        ScalarLog(str(tmp_path))


def test_scalars_of_every_trial(tmp_path):
    pytest.importorskip(
        "tensorboard", reason="TensorBoard is not installed (pip install 'pagnn-bench[tensorboard]')"
    )
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    record = {"seed": 3, "status": "ok", "test_acc": 0.75, "best_epoch": 2, "curve": [2.0, None, 0.5]}
    ScalarLog(str(tmp_path)).add(Outcome(Batch(CELL, 1, [3], 0), {}, [record]))
    events = EventAccumulator(str(tmp_path / CELL.id / "mask1-seed3"))
    events.Reload()
    assert [event.value for event in events.Scalars("test_acc")] == [0.75]
    assert [(event.step, event.value) for event in events.Scalars("train_loss")] == [(1, 2.0), (3, 0.5)]


def test_a_folder_that_cannot_be_had_is_refused_before_anything_is_trained(tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RequestError, match="file: cannot be written to"):
        ScalarLog(str(tmp_path / "file"))


def test_a_log_that_fails_ends_no_sweep(tmp_path, monkeypatch, caplog):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")

    def full(*_):
        raise OSError(28, "No space left on device")

    log = ScalarLog(str(tmp_path))
    monkeypatch.setattr(ScalarLog, "_add", full)
    for _ in range(2):
        log.add(Outcome(Batch(CELL, 1, [3], 0), {}, []))
    assert caplog.text.count("nothing more is written there (No space left on device)") == 1
