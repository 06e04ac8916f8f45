"""A Ray cluster: one remote task a job, outcomes streamed to the driver, which alone writes results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pagnn_bench.config.errors import RequestError
from pagnn_bench.engine.backends.base import Backend
from pagnn_bench.engine.backends.extras import need
from pagnn_bench.engine.backends.work import perform
from pagnn_bench.engine.outcome import Outcome
from pagnn_bench.engine.plan import Job, Settings
from pagnn_bench.engine.progress import Progress


class RayBackend(Backend):
    """Trains on the cluster at ``backend.address``; workers need no storage of ours.

    A batch whose worker is lost is started again by Ray, up to ``backend.retries`` times; after that it is a failed
    outcome like any other.
    """

    def __init__(self, settings: Settings) -> None:
        self.ray, options = need("ray", extra="ray"), settings.backend
        address = options["address"]
        if not address:
            raise RequestError(
                "backend.address: name the Ray cluster, such as 10.0.0.1:6379, or auto on its head node."
            )
        try:
            self.ray.init(address=address, log_to_driver=False, configure_logging=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise RequestError(f"backend.address={address}: no Ray cluster answers ({reason}).") from error
        # Imputations are kept only where a worker sees our folder: elsewhere its path means nothing.
        cache = settings.cache and options["shared_storage"]
        self.settings = replace(
            settings, threads=settings.threads or max(1, int(options["cpus"])), cache=cache
        )

    def run(self, jobs: Sequence[Job], progress: Progress) -> Iterator[Outcome]:
        """The outcomes, each as soon as it is there."""
        yield from progress.counted(self._outcomes(jobs))

    def _outcomes(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        ray, options = self.ray, self.settings.backend
        resources = {"num_cpus": options["cpus"], "num_gpus": options["gpus"]}
        task = ray.remote(**resources, max_retries=options["retries"])(perform)
        try:
            pending = {task.remote(job, self.settings): job for job in jobs}
            while pending:
                ready, _ = ray.wait(list(pending), num_returns=1)
                job = pending.pop(ready[0])
                try:
                    yield from ray.get(ready[0])
                except ray.exceptions.RayError as error:
                    yield from (Outcome.lost(batch, error) for batch in job)
        finally:
            ray.shutdown()  # of this connection; the cluster stays as it is
