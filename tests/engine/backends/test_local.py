"""Several processes give what one gives; a dying worker costs nothing but time."""

from __future__ import annotations

import dataclasses
import os
import signal

from pagnn_bench.engine.backends import local
from pagnn_bench.engine.backends.work import spread_over_gpus
from pagnn_bench.engine.cores import usable_cores
from pagnn_bench.engine.outcome import Outcome
from pagnn_bench.engine.plan import Batch, Job
from tests.engine.backends.common import SWEEP, accuracies, pagnn_bench
from tests.engine.test_plan import SETTINGS
from tests.records.common import CELL, OTHER


def test_two_processes_equal_one(undisturbed, tmp_path):
    done = pagnn_bench("run", *SWEEP, "n_jobs=2", cwd=tmp_path)
    assert "2 cells, 12 trials: 0 done already, 12 to train." in done.stdout
    assert accuracies(tmp_path / "results") == undisturbed


def fake_perform(key: int, job: Job, settings) -> tuple[int, list[Outcome]]:
    """Dies in the first attempt at mask 1."""
    [batch] = job
    marker = f"{settings.results_dir}/died"
    if batch.mask == 1 and not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    records = [{"seed": seed, "status": "ok", "test_acc": 0.5} for seed in batch.seeds]
    return key, [Outcome(batch, {}, records)]


def test_a_worker_that_dies_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_perform", fake_perform)
    settings = dataclasses.replace(SETTINGS, results_dir=str(tmp_path), n_jobs=2, threads=1)
    jobs = [(Batch(CELL, mask, [0, 1], 0),) for mask in range(4)]
    outcomes = list(local.ProcessBackend(settings).outcomes(jobs))
    assert (tmp_path / "died").exists()
    assert sorted(outcome.batch.mask for outcome in outcomes) == [0, 1, 2, 3]


def deadly_perform(key: int, job: Job, settings) -> tuple[int, list[Outcome]]:
    """Dies at mask 1, whenever it is tried."""
    [batch] = job
    if batch.mask == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    records = [{"seed": seed, "status": "ok", "test_acc": 0.5} for seed in batch.seeds]
    return key, [Outcome(batch, {}, records)]


def test_a_batch_whose_worker_dies_every_time_is_lost_and_the_others_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_perform", deadly_perform)
    settings = dataclasses.replace(SETTINGS, results_dir=str(tmp_path), n_jobs=2, threads=1)
    jobs = [(Batch(CELL, mask, [0, 1], 0),) for mask in (1, 0, 2, 1, 3)]
    outcomes = list(local.ProcessBackend(settings).outcomes(jobs))
    assert sorted((outcome.batch.mask, outcome.failed) for outcome in outcomes) == [
        *((0, False), (1, True), (1, True), (2, False), (3, False))
    ]
    assert "terminated" in next(outcome.error for outcome in outcomes if outcome.failed)


def test_a_single_batch_does_not_take_this_process_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_perform", deadly_perform)
    settings = dataclasses.replace(SETTINGS, results_dir=str(tmp_path), n_jobs=2, threads=1)
    [outcome] = local.ProcessBackend(settings).outcomes([(Batch(CELL, 1, [0], 0),)])
    assert outcome.failed


def test_cores_are_divided():
    cores = usable_cores()
    for processes, threads in ((1, cores), (cores, 1), (2 * cores, 1)):
        assert local.threads_per_process(dataclasses.replace(SETTINGS, n_jobs=processes)) == threads
    assert local.threads_per_process(dataclasses.replace(SETTINGS, threads=3, n_jobs=2)) == 3


def test_gpus_in_turn(monkeypatch):
    monkeypatch.setattr("pagnn_bench.engine.backends.work.visible_gpus", lambda: 2)
    batches = {key: Batch(cell, 0, [0], 0) for key, cell in enumerate((CELL, OTHER, CELL))}
    settings = dataclasses.replace(SETTINGS, device="auto")
    assert [own.device for *_, own in spread_over_gpus(batches, settings)] == ["cuda:0", "cuda:1", "cuda:0"]
    assert {own.device for *_, own in spread_over_gpus(batches, SETTINGS)} == {"cpu"}
