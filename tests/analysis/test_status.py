"""Status: counts per cell, running and dead commands, and what a person reads."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta

import pytest

from pagnn_bench.analysis.status import read_status, render
from pagnn_bench.cli.status import status_command
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import Cell
from pagnn_bench.engine.plan import Request, make_plan
from pagnn_bench.records.runs import ALIVE_SECONDS, RunLog, read_runs
from pagnn_bench.records.store import Store
from tests.engine.test_plan import SETTINGS, request
from tests.records.common import CELL, CONFIG, OTHER, failed, ok

THIRD = Cell(**{**CONFIG, "rate": 0.9})


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "results")


def start(store: Store, *requests: Request) -> RunLog:
    todo = sum(len(batch.seeds) for batch in make_plan(requests, store, SETTINGS))
    return RunLog(store.results_dir, [(each.cell, each.trials) for each in requests], todo)


def later(seconds: float) -> dict[str, str]:
    """Provenance of a batch that ends so many seconds from now."""
    return {"time": (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="seconds")}


def test_nothing_yet(store, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert status_command([]) == 0
    assert capsys.readouterr().out == "Nothing has been run yet.\n"
    assert not store.results_dir.exists()
    with pytest.raises(RequestError, match="there is no such folder"):
        status_command(["--results", "nothing"])
    with pytest.raises(RequestError, match="--results '': give the name of a folder"):
        status_command(["--results", ""])


def test_a_running_command_on_its_way(store):
    with start(store, request(CELL), request(OTHER)) as log:
        store.save(CELL, 0, [ok(0, 0.5), ok(1, 1.0), failed(2)], {}, later(1200))
        log.done(len(make_plan([request(CELL)], store, SETTINGS)[0].seeds))
        store.save(CELL, 1, [ok(0), ok(1), ok(2)], {}, later(1201))
        # What was there before the command says nothing of its speed.
        store.save(THIRD, 0, [ok(0)], {}, {"time": "2020-01-01T00:00:00+00:00"})
        store.save_failure(OTHER, 0, [0, 1, 2], "MemoryError: too large", "trace", {})
        status = read_status(store.results_dir)
        assert [(item.done, item.failed, item.todo) for item in status.cells] == [
            (5, 1, 0),
            (0, 3, 3),
            (1, 0, 0),
        ]
        assert status.commands == 1
        # Six trials since the command began; that the two batches ended together says nothing.
        assert status.per_minute == pytest.approx(0.3, rel=0.05)
        text = render(status)
        assert "last failure: MemoryError: too large" in text
        assert "1 command running" in text
        assert "0.3 trials per minute" in text
    text = render(read_status(store.results_dir))
    assert "no command is running" in text


def test_a_command_that_died_is_not_running(store):
    log = start(store, request(CELL))
    log.__enter__()  # and never left: killed
    assert [run.alive for run in read_runs(store.results_dir)] == [True]
    old = time.time() - ALIVE_SECONDS - 1
    os.utime(log.path, (old, old))
    run = read_runs(store.results_dir)[0]
    assert not run.alive
    assert run.left == 6
    log._stop.set()


def test_a_stopped_command_says_so(store):
    with pytest.raises(KeyboardInterrupt), start(store, request(CELL)) as log:
        raise KeyboardInterrupt
    assert '"stopped"' in log.path.read_text()
    assert not read_runs(store.results_dir)[0].alive


def test_a_clock_set_back_does_not_kill(store):
    with start(store, request(CELL)) as log:
        future = time.time() + 3600
        os.utime(log.path, (future, future))
        assert read_runs(store.results_dir)[0].alive


def test_results_without_any_command_file(store):
    """Results that came from elsewhere, such as the collected ones of a repository."""
    store.save(CELL, 0, [ok(0, 0.25)], {}, {})
    status = read_status(store.results_dir)
    assert [(item.done, item.todo, item.accuracy) for item in status.cells] == [(1, 0, 25.0)]
    assert render(status).endswith("1 cell: 1 trial done, 0 failed, 0 to do.")


def test_finished_cells_of_a_large_folder_are_counted_only(store, monkeypatch):
    monkeypatch.setattr("pagnn_bench.analysis.status.SCREENFUL", 1)
    store.save(CELL, 0, [ok(0, 0.25)], {}, {})
    store.save(OTHER, 0, [ok(0, 0.25), failed(1)], {}, {})
    status = read_status(store.results_dir)
    assert str(CELL) not in render(status)
    assert str(OTHER) in render(status)
    assert "1 finished cell not shown (--all shows them)" in render(status)
    assert str(CELL) in render(status, every=True)


def test_an_error_of_several_lines_is_one_line(store):
    store.save_failure(CELL, 0, [0], "ValueError: first\n  second", "trace", {})
    assert "last failure: ValueError: first second" in render(read_status(store.results_dir))


def test_the_speed_of_a_long_sweep_is_that_of_its_last_batches(store):
    with start(store, request(CELL, masks=30, seeds=1)):
        for mask in range(30):  # a minute each, then ten seconds each
            ended = 60 * mask if mask < 10 else 600 + 10 * (mask - 10)
            store.save(CELL, mask, [ok(0)], {}, later(ended + 100))
        assert read_status(store.results_dir).per_minute == pytest.approx(6, rel=0.05)
