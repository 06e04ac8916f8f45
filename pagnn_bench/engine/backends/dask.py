"""A Dask cluster: one future per job; outcomes are streamed to the driver, which alone writes results."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pagnn_bench.config.errors import RequestError
from pagnn_bench.engine.backends.base import Backend
from pagnn_bench.engine.backends.extras import need
from pagnn_bench.engine.backends.work import perform
from pagnn_bench.engine.outcome import Outcome
from pagnn_bench.engine.plan import Job, Settings
from pagnn_bench.engine.progress import Progress

_lost = False  # whether this process, a worker of Dask, has lost its GPU


def perform_unless_lost(job: Job, settings: Settings) -> list[Outcome]:
    """Train a job in a Dask worker.

    Dask does not know that a process can lose its GPU. Such a process exits at its next job, before starting it, and
    Dask gives the job to another one.
    """
    global _lost
    if _lost:
        os._exit(1)
    outcomes = perform(job, settings)
    _lost = _lost or outcomes[0].device_lost
    return outcomes


class DaskBackend(Backend):
    """Trains on the workers of the scheduler at ``backend.address``; they need no access to our storage.

    A batch whose worker is lost goes to another one. Dask gives up after as many losses as the scheduler allows; the
    batch is then a failed outcome like any other.
    """

    def __init__(self, settings: Settings) -> None:
        self.distributed, options = need("distributed", extra="dask"), settings.backend
        address = options["address"]
        if not address:
            raise RequestError("backend.address: name the Dask scheduler, such as tcp://10.0.0.1:8786.")
        try:
            self.client = self.distributed.Client(address, timeout=options["timeout"])
        except (OSError, TimeoutError, ValueError) as error:
            raise RequestError(f"backend.address={address}: no Dask scheduler answers ({error}).") from error
        cache = settings.cache and options["shared_storage"]
        self.settings = replace(settings, threads=settings.threads or 1, cache=cache)

    def run(self, jobs: Sequence[Job], progress: Progress) -> Iterator[Outcome]:
        """The outcomes, each as soon as it arrives."""
        yield from progress.counted(self._outcomes(jobs))

    def _outcomes(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        with self.client as client:
            # Not pure: two commands may submit the same batch, and a forced one must not get an earlier outcome.
            futures = {
                client.submit(perform_unless_lost, job, self.settings, pure=False): job for job in jobs
            }
            for future in self.distributed.as_completed(futures):
                error = future.exception()
                if error is None:
                    yield from future.result()
                else:
                    yield from (Outcome.lost(batch, error) for batch in futures[future])
                future.release()  # the outcome need not stay in the cluster's memory
