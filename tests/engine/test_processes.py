"""How many processes ``n_jobs=auto`` makes of cores, jobs and memory, and how stacks are cut to keep them busy."""

from __future__ import annotations

import dataclasses

import pytest

from pagnn_bench.config.identity import Cell
from pagnn_bench.engine import cores, memory, processes, workload
from pagnn_bench.engine.plan import Batch, Job, Settings
from pagnn_bench.engine.processes import Choice, fill_last_round, may_need_workers
from tests.engine.test_plan import SETTINGS
from tests.records.common import CONFIG

LONG = Cell(**{**CONFIG, "protocol": {**CONFIG["protocol"], "max_epochs": 1000}})
AUTO = dataclasses.replace(SETTINGS, n_jobs="auto")


def choose_processes(jobs: list[Job], settings: Settings, devices: tuple[str, ...] = ("cpu",)) -> Choice:
    return processes.choose_processes(jobs, settings, devices)


def jobs_of(number: int, seeds: int = 20, cell: Cell = LONG) -> list[Job]:
    return [(Batch(cell, mask, list(range(seeds)), 0),) for mask in range(number)]


def sizes(jobs: list[Job]) -> list[int]:
    return [sum(len(batch.seeds) for batch in job) for job in jobs]


@pytest.fixture
def machine(monkeypatch):
    """A machine with so many cores, memory for so many jobs, and so many seconds for an epoch."""

    def make(usable: int, fitting: float = 1000, epoch: float = 0.01) -> None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        monkeypatch.setattr(cores, "usable_cores", lambda: usable)
        monkeypatch.setattr(processes, "usable_cores", lambda: usable)
        monkeypatch.setattr(memory, "peak_bytes", lambda job: 1.0)
        monkeypatch.setattr(workload, "entry_seconds", lambda cell: epoch)
        monkeypatch.setattr(memory, "free_bytes", lambda: fitting)

    return make


def test_a_process_a_core(machine):
    machine(4)
    assert choose_processes(jobs_of(10), AUTO) == Choice(4, threads=1)


def test_threads_that_were_asked_for(machine):
    machine(8)
    asked = dataclasses.replace(AUTO, threads=3)
    assert choose_processes(jobs_of(10), asked) == Choice(2, threads=3)


def test_who_limits_threads_limits_cores(machine, monkeypatch):
    machine(8)
    for limit, expected in {"1": 1, "3": 3, "64": 8, "4,2": 4, "nonsense": 8, "0": 8}.items():
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
        assert choose_processes(jobs_of(10), AUTO).processes == expected, limit


def test_no_more_than_there_are_trials(machine):
    machine(64)
    assert choose_processes(jobs_of(2, seeds=8), AUTO).processes == 16
    assert choose_processes(jobs_of(1, seeds=1), AUTO).processes == 1


def test_a_plan_that_is_over_at_once_stays_in_this_process(machine):
    machine(4)
    short = dataclasses.replace(LONG, protocol={**LONG.protocol, "max_epochs": 2})
    assert choose_processes(jobs_of(5, cell=short), AUTO) == Choice(1, threads=1)
    assert not may_need_workers([batch for job in jobs_of(5, cell=short) for batch in job], AUTO)
    assert may_need_workers([batch for job in jobs_of(5) for batch in job], AUTO)
    machine(4, epoch=0.0)
    assert choose_processes(jobs_of(1), AUTO).processes == 1
    machine(4, epoch=0.001)
    assert choose_processes(jobs_of(1), AUTO).processes == 4, "a large graph"
    assert not may_need_workers([batch for job in jobs_of(5) for batch in job], SETTINGS)


def test_memory_is_a_bound_and_the_user_is_told(machine):
    machine(4, fitting=2.5)
    choice = choose_processes(jobs_of(10), AUTO)
    assert choice.processes == 2
    assert choice.note == "Free memory is enough for 2 processes, not 4; n_jobs=4 uses all of them anyway."
    machine(4, fitting=0.5)
    assert choose_processes(jobs_of(10), AUTO).processes == 1


def test_a_process_a_gpu(machine):
    machine(16)
    assert choose_processes(jobs_of(10), AUTO, ("cuda:0", "cuda:1")) == Choice(2, threads=None)
    assert choose_processes(jobs_of(1), AUTO, ("cuda:0", "cuda:1")).processes == 1
    assert choose_processes(jobs_of(10), AUTO, ("cuda:1",)).processes == 1
    assert choose_processes(jobs_of(40), AUTO) == Choice(16, threads=1)


def test_threads_of_several_processes(machine):
    machine(8)
    for n_jobs, threads in ((1, 8), (2, 4), (3, 2), (16, 1), ("auto", 1)):
        assert processes.worker_threads(dataclasses.replace(SETTINGS, n_jobs=n_jobs)) == threads
    assert processes.worker_threads(dataclasses.replace(SETTINGS, threads=3, n_jobs=2)) == 3


@pytest.mark.parametrize(
    ("jobs", "workers", "expected"),
    [
        ([20, 20], 2, [20, 20]),
        ([20], 1, [20]),
        ([20], 2, [10, 10]),
        ([20, 20, 20], 2, [20, 20, 10, 10]),
        ([20], 3, [6, 7, 7]),
        ([20, 20], 3, [6, 7, 7, 6, 7, 7]),
        ([20, 20, 20], 4, [20, 20, 20]),  # parts would take as long as the whole
        ([1], 2, [1]),
        ([20, 3], 4, [10, 10, 1, 2]),
    ],
)
def test_the_last_round_is_cut_to_fill_it(jobs, workers, expected):
    whole = [(Batch(LONG, mask, list(range(size)), 0),) for mask, size in enumerate(jobs)]
    cut = fill_last_round(whole, workers)
    assert sizes(cut) == expected
    trials = [(batch.mask, seed) for job in cut for batch in job for seed in batch.seeds]
    assert trials == [(mask, seed) for mask, size in enumerate(jobs) for seed in range(size)]


def test_a_stack_of_several_cells_is_cut_between_and_inside_them():
    other = dataclasses.replace(LONG, rate=0.9)
    job = (Batch(LONG, 0, [0, 1, 2, 3], 7), Batch(other, 0, [0, 1], 7))
    first, second = fill_last_round([job], 2)
    assert first == (Batch(LONG, 0, [0, 1, 2], 7),)
    assert second == (Batch(LONG, 0, [3], 7), Batch(other, 0, [0, 1], 7))
