"""The machine at hand: one process, or several that share its cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pagnn_bench.engine.backends.base import Backend
from pagnn_bench.engine.backends.work import perform, spread_over_gpus
from pagnn_bench.engine.cores import usable_cores
from pagnn_bench.engine.outcome import Outcome
from pagnn_bench.engine.plan import Job, Settings
from pagnn_bench.engine.progress import Progress


def open_local(settings: Settings) -> Backend:
    """This process for ``n_jobs=1``, worker processes for more."""
    return SerialBackend(settings) if settings.n_jobs == 1 else ProcessBackend(settings)


class SerialBackend(Backend):
    """One job after the other in this process; the progress bar sees every epoch."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def run(self, jobs: Sequence[Job], progress: Progress) -> Iterator[Outcome]:
        for job in jobs:
            progress.start(job[0].cell, job[0].mask, sum(len(batch.seeds) for batch in job))
            yield from perform(job, self.settings, progress)


class ProcessBackend(Backend):
    """``n_jobs`` worker processes (joblib with loky); outcomes come in the order in which they are finished."""

    def __init__(self, settings: Settings) -> None:
        self.processes = settings.n_jobs
        self.settings = replace(settings, threads=threads_per_process(settings))

    def run(self, jobs: Sequence[Job], progress: Progress) -> Iterator[Outcome]:
        yield from progress.counted(self.outcomes(jobs))

    def outcomes(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        """The outcomes of all batches of all jobs.

        A worker process that dies (out of memory, say) takes the pool with it. Those that were under way are then
        trained one by one: the one that dies again is lost, and the others go on.
        """
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        left = dict(enumerate(jobs))
        while left:
            started: set[int] = set()
            try:
                for key, outcomes in self._pool(left, started):
                    del left[key]
                    yield from outcomes
            except TerminatedWorkerError:
                suspects = sorted(started & left.keys())
                if not suspects:
                    raise
                for key in suspects:
                    job = left.pop(key)
                    try:
                        [(_, outcomes)] = self._pool({key: job}, started)
                    except TerminatedWorkerError as error:
                        outcomes = [Outcome.lost(batch, error) for batch in job]
                    yield from outcomes

    def _pool(self, jobs: Mapping[int, Job], started: set[int]) -> Iterator[tuple[int, list[Outcome]]]:
        """Train these jobs in worker processes; ``started`` gets the key of every one that was handed out."""
        import joblib

        def handed_out() -> Iterator[Any]:
            for key, job, settings in spread_over_gpus(jobs, self.settings):
                started.add(key)
                yield joblib.delayed(_perform)(key, job, settings)

        # With a single job joblib would train in this process, and die with it.
        processes = max(2, min(self.processes, len(jobs)))
        pool = joblib.Parallel(n_jobs=processes, return_as="generator_unordered", pre_dispatch="n_jobs")
        with joblib.parallel_config("loky", inner_max_num_threads=self.settings.threads):
            yield from pool(handed_out())


def threads_per_process(settings: Settings) -> int:
    """The cores divided among the processes: more threads than cores would only wait for each other."""
    return settings.threads or max(1, usable_cores() // settings.n_jobs)


def _perform(key: int, job: Job, settings: Settings) -> tuple[int, list[Outcome]]:
    return key, perform(job, settings)
