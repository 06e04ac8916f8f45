"""Worker processes that take jobs one by one; one that dies loses only its current job."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from typing import Any, TypeAlias

from pagnn_bench.engine.backends.cards import hold_card
from pagnn_bench.engine.backends.nursery import start_worker
from pagnn_bench.engine.backends.work import perform
from pagnn_bench.engine.outcome import DeviceLost, Outcome
from pagnn_bench.engine.plan import Batch, Job, Settings
from pagnn_bench.engine.progress import UnderWay, Watcher

logger = logging.getLogger(__name__)

NOTE_SECONDS = 0.5  # how often a worker reports its progress

Perform: TypeAlias = "Callable[[Job, Settings, Connection], list[Outcome]]"
Show: TypeAlias = "Callable[[Sequence[UnderWay]], None]"


class Notes(Watcher):
    """Reports the progress of a batch to the parent, now and then."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self._last = connection, 0.0

    def epoch(self, epoch: int, finished: Sequence[Any]) -> None:
        self.report(f"epoch {epoch}")

    def report(self, text: str) -> None:
        if time.monotonic() - self._last >= NOTE_SECONDS:
            self._last = time.monotonic()
            self.connection.send(text)


def perform_and_report(job: Job, settings: Settings, connection: Connection) -> list[Outcome]:
    """Train a job in a worker process, on its own GPU if the settings name one."""
    kind, _, card = settings.device.partition(":")
    if kind == "cuda" and card:
        hold_card(int(card))
        settings = replace(settings, device="cuda:0")
    return perform(job, settings, Notes(connection))


@dataclass(eq=False)
class _Worker:
    """A process and its current job."""

    settings: Settings
    connection: Connection
    pid: int | None = None  # None until its first message
    job: Job | None = None
    mask: Hashable = None  # the last one it has prepared
    since: float = 0.0
    note: str = ""


@dataclass
class Crew:
    """Trains jobs in worker processes.

    Attributes:
        settings: one per process, which may differ in their devices; only those whose GPU can still be used.
        threads: of every process.
        show: called now and then with the jobs in progress.
        perform: what a worker does with a job.
    """

    settings: Sequence[Settings]
    threads: int
    show: Show
    perform: Perform
    _workers: list[_Worker] = field(default_factory=list)

    def train(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, list[Outcome] | None]]:
        """The outcomes of every job as soon as it is done; None if its process died.

        Raises:
            DeviceLost: none of the GPUs can be used any more.
        """
        waiting = list(jobs)
        try:
            for settings in self.settings[: len(jobs)]:
                self._hire(settings, waiting)
            while self._workers:
                for connection in wait([worker.connection for worker in self._workers], NOTE_SECONDS):
                    worker = next(each for each in self._workers if each.connection is connection)
                    yield from self._hear(worker, waiting)
                self.show([_under_way(worker) for worker in self._workers if worker.job])
        finally:
            self._dismiss()

    def _hire(self, settings: Settings, waiting: list[Job]) -> None:
        worker = _Worker(settings, start_worker(self.threads))
        self._workers.append(worker)
        self._hand_out(worker, waiting)

    def _hear(self, worker: _Worker, waiting: list[Job]) -> Iterator[tuple[Job, list[Outcome] | None]]:
        """Take the next message of a worker, or its death."""
        job = worker.job
        assert job is not None
        try:
            message = worker.connection.recv()
        except (EOFError, OSError):
            self._replace(worker, waiting)
            yield job, None
            return
        if isinstance(message, int):
            worker.pid = message
        elif isinstance(message, str):
            worker.note = message
        elif not message[0].begun:
            waiting.insert(0, job)
            self._retire(worker, message[0], waiting)
        elif any(outcome.device_lost for outcome in message):
            self._replace(worker, waiting)
            yield job, message
        else:
            self._hand_out(worker, waiting)
            yield job, message

    def _replace(self, worker: _Worker, waiting: list[Job]) -> None:
        """Dismiss a worker that is dead, or whose GPU is lost; hire another one if there is work left."""
        worker.connection.close()
        self._workers.remove(worker)
        if waiting:
            self._hire(worker.settings, waiting)

    def _retire(self, worker: _Worker, outcome: Outcome, waiting: list[Job]) -> None:
        """Give up the GPU of a worker that could not open it; a worker that had no work left may be hired again."""
        device = worker.settings.device
        reason = str(outcome.error).removeprefix("RequestError: ").replace("cuda:0", device)
        logger.warning("%s It is left out from here on.", reason)
        worker.connection.close()
        self._workers.remove(worker)
        self.settings = [own for own in self.settings if own.device != device]
        if not self.settings:
            raise DeviceLost("No GPU is left")
        busy = [other.settings for other in self._workers]
        if idle := [own for own in self.settings if not any(own is other for other in busy)]:
            self._hire(idle[0], waiting)

    def _hand_out(self, worker: _Worker, waiting: list[Job]) -> None:
        """Give a worker its next job, or dismiss it."""
        if not waiting:
            self._workers.remove(worker)
            worker.connection.close()
            return
        job = waiting.pop(_choose(waiting, worker.mask, {other.mask for other in self._workers}))
        worker.job, worker.mask, worker.since, worker.note = job, mask_of(job[0]), time.monotonic(), ""
        with suppress(OSError):  # it has just died, which its pipe will show
            worker.connection.send((self.perform, (job, worker.settings)))

    def _dismiss(self) -> None:
        """Stop whatever is still running: it is no longer wanted."""
        for worker in self._workers:
            if worker.pid is not None:
                with suppress(OSError):
                    os.kill(worker.pid, signal.SIGTERM)
            worker.connection.close()
        self._workers.clear()


def mask_of(batch: Batch) -> Hashable:
    """Batches with the same value may share a slow preparation, above all a learned imputation."""
    cell = batch.cell
    return cell.method["name"], cell.data["name"], cell.missing["name"], cell.rate, batch.mask


def _choose(waiting: Sequence[Job], own: Hashable, taken: set[Hashable]) -> int:
    """The first job on the mask that a worker has prepared, else on one that no worker has, else the first of all.

    So no process repeats a preparation, and none waits for what another is still learning.
    """
    masks = [mask_of(job[0]) for job in waiting]
    if own in masks:
        return masks.index(own)
    return next((k for k, mask in enumerate(masks) if mask not in taken), 0)


def _under_way(worker: _Worker) -> UnderWay:
    assert worker.job is not None
    batch = worker.job[0]
    return UnderWay(batch.cell, batch.mask, worker.note, time.monotonic() - worker.since)
