"""The machine at hand: one process, or several that share its cores."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pagnn_bench.backends.work import Outcome, perform, spread_over_gpus
from pagnn_bench.plan import Batch, Settings
from pagnn_bench.progress import Progress

# A worker process that dies (out of memory, say) takes the pool with it; the rest is tried again.
ATTEMPTS = 3


class SerialBackend:
    """One batch after the other in this process; the progress bar sees every epoch."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def run(self, batches: Sequence[Batch], progress: Progress) -> Iterator[Outcome]:
        for batch in batches:
            progress.start(batch.cell, batch.mask, len(batch.seeds))
            yield perform(batch, self.settings, progress)


class ProcessBackend:
    """``n_jobs`` worker processes (joblib with loky); outcomes come in the order in which they are finished."""

    def __init__(self, settings: Settings) -> None:
        self.processes = settings.n_jobs
        self.settings = replace(settings, threads=threads_per_process(settings))

    def run(self, batches: Sequence[Batch], progress: Progress) -> Iterator[Outcome]:
        yield from progress.counted(self.outcomes(batches))

    def outcomes(self, batches: Sequence[Batch]) -> Iterator[Outcome]:
        """The outcomes of all batches.

        Raises:
            joblib.externals.loky.process_executor.TerminatedWorkerError: workers kept dying.
        """
        import joblib
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        left = dict(enumerate(batches))
        for attempt in range(1, ATTEMPTS + 1):
            work = spread_over_gpus(left, self.settings)
            pool = joblib.Parallel(
                n_jobs=min(self.processes, len(work)), return_as="generator_unordered", pre_dispatch="n_jobs"
            )
            with joblib.parallel_config("loky", inner_max_num_threads=self.settings.threads):
                outcomes = pool(joblib.delayed(_perform)(*item) for item in work)
                try:
                    for key, outcome in outcomes:
                        del left[key]
                        yield outcome
                    return
                except TerminatedWorkerError:
                    if attempt == ATTEMPTS:
                        raise


def threads_per_process(settings: Settings) -> int:
    """The cores divided among the processes: more threads than cores would only wait for each other."""
    return settings.threads or max(1, len(os.sched_getaffinity(0)) // settings.n_jobs)


def _perform(key: int, batch: Batch, settings: Settings) -> tuple[int, Outcome]:
    return key, perform(batch, settings)
