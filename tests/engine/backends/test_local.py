"""Several processes give what one gives; a dying worker costs nothing but time."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time

import pytest

from pagnn_bench.engine.backends import local
from pagnn_bench.engine.backends.crew import _choose, mask_of
from pagnn_bench.engine.backends.nursery import cool_down
from pagnn_bench.engine.cores import usable_cores
from pagnn_bench.engine.outcome import Outcome
from pagnn_bench.engine.plan import Batch, Job, Settings
from pagnn_bench.records.store import Store
from tests.engine.backends.common import SWEEP, accuracies, pagnn_bench
from tests.engine.test_plan import SETTINGS
from tests.records.common import CELL, OTHER

TWO_CORES = {**os.environ, "OMP_NUM_THREADS": "2"}


@pytest.mark.parametrize("n_jobs", ["1", "2", "auto"])
def test_any_number_of_processes_gives_the_same(undisturbed, tmp_path, n_jobs):
    done = pagnn_bench("run", *SWEEP, f"n_jobs={n_jobs}", cwd=tmp_path)
    assert "2 cells, 12 trials: 0 done already, 12 to train." in done.stdout
    assert accuracies(tmp_path / "results") == undisturbed


@pytest.fixture(scope="module", autouse=True)
def nobody_left_behind():
    yield
    cool_down()


# Enough of it that n_jobs=auto starts workers, and one stack that is cut in two.
WORTH_WHILE = (
    *("data=synthetic", "data.num_nodes=400", "data.num_val=60", "data.num_test=100", "method=zero"),
    *("protocol=quick", "protocol.max_epochs=300", "masks=3", "seeds=20"),
)


@pytest.mark.skipif(usable_cores() < 2, reason="one core")
def test_the_default_uses_the_cores_with_one_thread_each(tmp_path):
    command = [sys.executable, "-m", "pagnn_bench", "run", *WORTH_WHILE]
    done = subprocess.run(command, cwd=tmp_path, env=TWO_CORES, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    store = Store(tmp_path / "results")
    [cell] = store.cells()
    trials = store.load(cell)
    batches = {trial.batch.path: trial.batch for trial in trials.values()}.values()
    assert sorted(batch.facts["stack"] for batch in batches) == [10, 10, 20, 20]
    assert {batch.provenance["threads"] for batch in batches} == {1}
    pagnn_bench("run", *WORTH_WHILE, "n_jobs=1", "results_dir=alone", cwd=tmp_path)
    alone = accuracies(tmp_path / "alone")
    assert accuracies(tmp_path / "results") == pytest.approx(alone, abs=0.02), (
        "a stack of 10 rounds otherwise"
    )


def note_of(batch: Batch) -> list[Outcome]:
    records = [{"seed": seed, "status": "ok", "test_acc": 0.5} for seed in batch.seeds]
    return [Outcome(batch, {}, records)]


def dies_once(job: Job, settings: Settings, connection) -> list[Outcome]:
    """Dies in the first attempt at mask 1."""
    [batch] = job
    marker = f"{settings.results_dir}/died"
    if batch.mask == 1 and not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return note_of(batch)


def dies_always(job: Job, settings: Settings, connection) -> list[Outcome]:
    """Dies at mask 1, whenever it is tried; says at which mask it is."""
    [batch] = job
    if batch.mask == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    connection.send(f"mask {batch.mask}")
    return note_of(batch)


def trained(folder, monkeypatch, perform, masks) -> list[Outcome]:
    monkeypatch.setattr(local, "perform_and_report", perform)
    settings = dataclasses.replace(SETTINGS, results_dir=str(folder), n_jobs=2, threads=1)
    jobs = [(Batch(CELL, mask, [0, 1], 0),) for mask in masks]
    return list(local.LocalBackend(settings).outcomes(jobs, lambda tasks: None))


def test_a_worker_that_dies_is_replaced(tmp_path, monkeypatch):
    outcomes = trained(tmp_path, monkeypatch, dies_once, range(4))
    assert (tmp_path / "died").exists()
    assert sorted(outcome.batch.mask for outcome in outcomes) == [0, 1, 2, 3]
    assert not any(outcome.failed for outcome in outcomes)
    assert outcomes[-1].batch.mask == 1, "tried again when it has the machine to itself"


def test_a_batch_whose_worker_dies_every_time_is_lost_and_the_others_go_on(tmp_path, monkeypatch):
    outcomes = trained(tmp_path, monkeypatch, dies_always, (1, 0, 2, 1, 3))
    assert sorted((outcome.batch.mask, outcome.failed) for outcome in outcomes) == [
        *((0, False), (1, True), (1, True), (2, False), (3, False))
    ]
    assert "killed, twice" in next(outcome.error for outcome in outcomes if outcome.failed)


def test_a_single_batch_does_not_take_this_process_with_it(tmp_path, monkeypatch):
    [outcome] = trained(tmp_path, monkeypatch, dies_always, [1])
    assert outcome.failed


def test_workers_without_fork(tmp_path, monkeypatch):
    cool_down()
    monkeypatch.delattr(os, "fork")
    assert [outcome.failed for outcome in trained(tmp_path, monkeypatch, dies_always, (0, 2))] == [False] * 2


# -- Stopped in the middle -----------------------------------------------------------------------------------

ENDLESS = (*WORTH_WHILE, "protocol.patience=1000000", "protocol.max_epochs=1000000", "n_jobs=2")


def children_of(pid: int) -> set[int]:
    """All processes of the group that a process leads."""
    listed = subprocess.run(["ps", "-eo", "pid=,pgid="], capture_output=True, text=True, check=True).stdout
    groups = [map(int, line.split()) for line in listed.splitlines()]
    return {own for own, group in groups if group == pid and own != pid}


def wait_until(condition, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_goes_on_after_the_command_was_stopped(tmp_path, number):
    command = [sys.executable, "-m", "pagnn_bench", "run", *ENDLESS]
    sweep = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, process_group=0
    )
    # The process that forks, and two workers.
    wait_until(lambda: len(children_of(sweep.pid)) == 3)
    time.sleep(1)
    if number == signal.SIGINT:
        os.killpg(sweep.pid, number)  # as a terminal does
    else:
        sweep.send_signal(number)
    sweep.wait(timeout=30)
    wait_until(lambda: not children_of(sweep.pid), 20)
    err = sweep.stderr.read()
    assert "Traceback" not in err
    if number != signal.SIGKILL:
        assert sweep.returncode == 130
        assert err.endswith("Stopped. Every finished batch is kept; the same command continues from here.\n")


# -- Who takes what ------------------------------------------------------------------------------------------


def test_a_worker_keeps_to_the_mask_that_it_has_prepared():
    waiting = [(Batch(cell, mask, [0], 0),) for cell, mask in ((CELL, 0), (OTHER, 0), (CELL, 1))]
    here, there, later = (mask_of(job[0]) for job in waiting)
    assert _choose(waiting, None, set()) == 0
    assert _choose(waiting, later, {here}) == 2
    assert _choose(waiting, None, {here}) == 1, "nobody waits for what another is just learning"
    assert _choose(waiting, None, {here, there, later}) == 0
