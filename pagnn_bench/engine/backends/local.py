"""This machine: one process, or several that share its cores."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pagnn_bench.engine.backends.base import Backend
from pagnn_bench.engine.backends.cards import devices_here
from pagnn_bench.engine.backends.crew import Crew, Show, perform_and_report
from pagnn_bench.engine.backends.nursery import cool_down
from pagnn_bench.engine.backends.work import perform
from pagnn_bench.engine.outcome import Outcome
from pagnn_bench.engine.plan import Job, Settings
from pagnn_bench.engine.processes import choose_processes, fill_last_round, worker_threads
from pagnn_bench.engine.progress import Progress

LOST = "its process was killed, twice (by the system, because memory ran out?)"


class LocalBackend(Backend):
    """This process, or several workers: ``n_jobs`` of them, or as many as pay off for these jobs on this machine."""

    def __init__(self, settings: Settings) -> None:
        self.processes = 1 if settings.n_jobs == "auto" else settings.n_jobs
        self.settings = settings

    def arrange(self, jobs: Sequence[Job]) -> list[Job]:
        if self.settings.n_jobs != "auto":
            return list(jobs)
        choice = choose_processes(jobs, self.settings, devices_here(self.settings))
        if choice.note:
            print(choice.note, file=sys.stderr)
        self.processes = choice.processes
        self.settings = replace(self.settings, threads=choice.threads)
        return fill_last_round(jobs, self.processes)

    def run(self, jobs: Sequence[Job], progress: Progress) -> Iterator[Outcome]:
        if self.processes > 1:
            yield from progress.counted(self.outcomes(jobs, progress.under_way))
            return
        cool_down()  # workers may have been started before it was clear that they are not needed
        settings = replace(self.settings, device=devices_here(self.settings)[0])
        for job in jobs:  # here the progress bar sees every epoch
            progress.start(job[0].cell, job[0].mask, sum(len(batch.seeds) for batch in job))
            outcomes = perform(job, settings, progress)
            yield from outcomes
            outcomes[0].raise_if_device_lost()

    def outcomes(self, jobs: Sequence[Job], show: Show) -> Iterator[Outcome]:
        """The outcomes of all batches of all jobs, trained in worker processes.

        A job whose process died (out of memory, say) is trained again after all others, alone on the machine; if its
        process dies again, the job is lost.
        """
        threads = worker_threads(self.settings)
        devices = itertools.cycle(devices_here(self.settings))
        workers = [
            replace(self.settings, threads=threads, device=device)
            for device in itertools.islice(devices, self.processes)
        ]
        orphans, crew = [], Crew(workers, threads, show, perform_and_report)
        for job, outcomes in crew.train(jobs):
            if outcomes is None:
                orphans.append(job)
            else:
                yield from outcomes
        for orphan in orphans:
            [(job, outcomes)] = Crew(crew.settings[:1], threads, show, perform_and_report).train([orphan])
            yield from outcomes or [Outcome.lost(batch, WorkerLost(LOST)) for batch in job]


class WorkerLost(RuntimeError):
    """A worker process ended before its job did."""
