"""Slurm through submitit: jobs are packed into array jobs and submitted, and the command returns.

Slurm's jobs write their results themselves into the shared results folder; ``pagnn-bench status`` shows them arriving.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pagnn_bench.config.errors import RequestError
from pagnn_bench.engine.backends.base import Backend
from pagnn_bench.engine.backends.extras import need
from pagnn_bench.engine.backends.work import perform
from pagnn_bench.engine.outcome import Outcome
from pagnn_bench.engine.plan import Job, Settings
from pagnn_bench.engine.progress import Progress
from pagnn_bench.records.store import Store


class SlurmBackend(Backend):
    """Submits all jobs to Slurm and does not wait for them."""

    waits: ClassVar[bool] = False

    def __init__(self, settings: Settings) -> None:
        self.submitit, self.settings = need("submitit", extra="slurm"), settings
        self.submitted: list[str] = []

    def run(self, jobs: Sequence[Job], progress: Progress) -> Iterator[Outcome]:
        options = self.settings.backend
        packs = pack_jobs(jobs, options["batches_per_job"])
        # Slurm limits the size of an array (MaxArraySize), so a long plan becomes several.
        for first in range(0, len(packs), options["array_size"]):
            self._submit(packs[first : first + options["array_size"]])
        return iter(())

    def _submit(self, array: Sequence[Sequence[Job]]) -> None:
        submitit, done = self.submitit, self.submitted
        try:
            executor = make_executor(submitit, self.settings)
            jobs = executor.map_array(train_and_save, array, [self.settings] * len(array))
        # There is no Slurm here, or it refuses the options.
        except (RuntimeError, submitit.core.utils.FailedJobError) as error:
            reason = "; ".join(line.strip() for line in str(error).splitlines() if line.strip())
            subject = f"only jobs {done[0]} to {done[-1]} were" if done else "nothing was"
            raise RequestError(f"backend=slurm: {subject} submitted ({reason}).") from error
        self.submitted += [job.job_id for job in jobs]


def pack_jobs(jobs: Sequence[Job], size: int) -> list[list[Job]]:
    """Pack neighbouring jobs of a plan, about ``size`` batches together, so that short ones share a start-up."""
    packs: list[list[Job]] = []
    for job in jobs:
        if not packs or sum(map(len, packs[-1])) >= size:
            packs.append([])
        packs[-1].append(job)
    return packs


def train_and_save(pack: Sequence[Job], settings: Settings) -> int:
    """The work of one Slurm job: train, and save each batch as it ends; returns how many of them failed.

    Batches that another job or an earlier run has finished in the meantime are skipped, so a requeued job resumes where
    it stopped.
    """
    store, failed = Store(settings.results_dir), 0
    for job in pack:
        left = tuple(replace(batch, seeds=seeds) for batch in job if (seeds := batch.seeds_left(store)))
        if not left:
            continue
        outcomes = perform(left, settings)
        for outcome in outcomes:
            outcome.save(store)
            failed += outcome.failed
        print(outcomes[0].note, end="\n" if outcomes[0].note else "")
        outcomes[0].raise_if_device_lost()
    return failed


def make_executor(submitit: Any, settings: Settings) -> Any:
    """A submitit executor with the options of ``backend.*``."""
    options = settings.backend
    folder = Path(settings.results_dir).resolve() / "slurm"
    executor = submitit.AutoExecutor(folder=folder, cluster=options["cluster"])
    executor.update_parameters(
        name="pagnn-bench",
        timeout_min=options["minutes"],
        cpus_per_task=options["cpus"],
        gpus_per_node=options["gpus"],
        mem_gb=options["memory_gb"],
        slurm_array_parallelism=options["parallel"],
        slurm_partition=options["partition"],
        slurm_additional_parameters=dict(options["more"]),
    )
    return executor
