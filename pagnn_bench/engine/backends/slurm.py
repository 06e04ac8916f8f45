"""Slurm through submitit: batches are packed into array jobs, submitted, and the command returns.

The jobs write their results themselves into the shared results folder; ``pagnn-bench status`` shows them arriving.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pagnn_bench.config.errors import RequestError
from pagnn_bench.engine.backends.extras import need
from pagnn_bench.engine.backends.work import perform
from pagnn_bench.engine.plan import Batch, Settings
from pagnn_bench.records.store import Store


def packs(batches: Sequence[Batch], size: int) -> list[list[Batch]]:
    """Neighbouring batches of the plan, ``size`` to a job, so that short ones share a start-up."""
    return [list(batches[first : first + size]) for first in range(0, len(batches), size)]


def work_off(pack: Sequence[Batch], settings: Settings) -> int:
    """What one job does: train its batches one by one and save each; how many of them failed.

    What another job or an earlier run has finished in the meantime is left out, so a requeued job goes on where it was.
    """
    store, failed = Store(settings.results_dir), 0
    for batch in pack:
        seeds = batch.seeds
        if batch.generation == 0:
            seeds = store.missing(batch.cell, [batch.mask], batch.seeds).get(batch.mask, [])
        if not seeds:
            continue
        [outcome] = perform((replace(batch, seeds=seeds),), settings)
        outcome.save(store)
        failed += outcome.failed
    return failed


def submit(batches: Sequence[Batch], settings: Settings) -> list[str]:
    """Submit all batches; the identifiers of the jobs."""
    submitit = need("submitit", extra="slurm")
    options = settings.backend
    jobs = packs(batches, options["batches_per_job"])
    identifiers: list[str] = []
    # An array has a largest size (Slurm's MaxArraySize), so a long plan becomes several.
    for first in range(0, len(jobs), options["array_size"]):
        array = jobs[first : first + options["array_size"]]
        try:
            executor = make_executor(submitit, settings)
            submitted = executor.map_array(work_off, array, [settings] * len(array))
        # No Slurm here, or it refuses the options.
        except (RuntimeError, submitit.core.utils.FailedJobError) as error:
            reason = "; ".join(line.strip() for line in str(error).splitlines() if line.strip())
            done = f"only jobs {identifiers[0]} to {identifiers[-1]} were" if identifiers else "nothing was"
            raise RequestError(f"backend=slurm: {done} submitted ({reason}).") from error
        identifiers += [job.job_id for job in submitted]
    return identifiers


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
