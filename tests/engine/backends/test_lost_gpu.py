"""A process of a cluster that has lost its GPU is given no further job; no cluster is needed to see it."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from pagnn_bench.engine.backends import ray, slurm
from pagnn_bench.engine.outcome import DeviceLost, Outcome
from pagnn_bench.engine.plan import Batch, Job, Settings
from pagnn_bench.records.store import Store
from tests.engine.test_plan import SETTINGS
from tests.records.common import CELL, ok

JOBS = [(Batch(CELL, mask, [0], 0),) for mask in range(4)]
LOST_AT = 1


def perform(job: Job, settings: Settings) -> list[Outcome]:
    lost = job[0].mask == LOST_AT
    return [Outcome(job[0], {}, [] if lost else [ok(0)], error="E: lost" if lost else None, device_lost=lost)]


def test_a_job_of_slurm_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(slurm, "perform", perform)
    with pytest.raises(DeviceLost, match="mask 1: E: lost"):
        slurm.train_and_save(JOBS, dataclasses.replace(SETTINGS, results_dir=str(tmp_path)))
    store = Store(tmp_path)
    assert set(store.load(CELL)) == {(0, 0)}
    assert [failure.mask for failure in store.failures(CELL)] == [LOST_AT], (
        "the batch is named, and kept is what was"
    )


class Ray:
    """Actors that do at once what they are asked to; the first of all calls is the first to be answered."""

    exceptions = SimpleNamespace(RayError=ZeroDivisionError)

    def __init__(self) -> None:
        self.trained: list[tuple[int, int]] = []  # (actor, mask)
        self.actors = 0

    def remote(self, kind):
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda: self._actor(kind())))

    def _actor(self, worker):
        self.actors += 1
        number = self.actors

        def train(job, settings):
            self.trained.append((number, job[0].mask))
            return iter([worker.train(job, settings)])

        def start():
            return iter([worker.start()])

        return SimpleNamespace(start=SimpleNamespace(remote=start), train=SimpleNamespace(remote=train))

    def wait(self, calls, num_returns):
        return calls[:1], calls[1:]

    def get(self, call):
        return next(call)


def test_a_worker_of_ray_is_let_go(monkeypatch):
    monkeypatch.setattr(ray, "perform", perform)
    backend = object.__new__(ray.RayBackend)
    backend.ray = Ray()
    backend.settings = dataclasses.replace(SETTINGS, backend={"cpus": 1, "gpus": 1, "retries": 0})
    outcomes = list(backend._train(list(reversed(JOBS))))
    assert [outcome.batch.mask for outcome in outcomes] == [0, 1, 2, 3]
    [(first, _), (loser, _), *rest] = backend.ray.trained
    assert first == loser
    assert loser not in {actor for actor, _ in rest}, "another one takes its place"
