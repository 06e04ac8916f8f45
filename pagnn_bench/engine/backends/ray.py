"""A Ray cluster: long-lived workers; outcomes are streamed to the driver, which alone writes results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pagnn_bench.config.errors import RequestError
from pagnn_bench.engine.backends.base import Backend
from pagnn_bench.engine.backends.extras import need
from pagnn_bench.engine.backends.work import perform
from pagnn_bench.engine.outcome import Outcome
from pagnn_bench.engine.plan import Job, Settings
from pagnn_bench.engine.progress import Progress


class RayBackend(Backend):
    """Trains on the cluster at ``backend.address``; workers need no access to our storage.

    Ray restarts a lost worker with the batch it was training, up to ``backend.retries`` times; after that the batch is
    a failed outcome like any other, and another worker takes over.
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
        # Imputations are cached only if workers see our folder: elsewhere its path means nothing.
        cache = settings.cache and options["shared_storage"]
        self.settings = replace(
            settings, threads=settings.threads or max(1, int(options["cpus"])), cache=cache
        )

    def run(self, jobs: Sequence[Job], progress: Progress) -> Iterator[Outcome]:
        """The outcomes, each as soon as it arrives."""
        yield from progress.counted(self._outcomes(jobs))

    def _outcomes(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        try:
            yield from self._train(list(reversed(jobs)))
        finally:
            self.ray.shutdown()  # ends this connection and its workers, not the cluster

    def _train(self, waiting: list[Job]) -> Iterator[Outcome]:
        """Hand out jobs, the last of the list first, to workers as they start and as they become free.

        Ray starts as many workers as the cluster has room for; the rest are applicants, for which an autoscaling
        cluster grows. While jobs wait there are as many applicants as workers, and at least one.
        """
        ray = self.ray
        applicants: dict[Any, Any] = {}  # the call that returns once a worker has started → the worker
        busy: dict[Any, tuple[Any, Job]] = {}
        while waiting or busy:
            if not waiting:
                applicants.clear()  # Ray ends workers without references
            while len(applicants) < min(len(waiting), max(1, len(busy))):
                applicant = self._hire()
                applicants[applicant.start.remote()] = applicant
            [call], _ = ray.wait([*busy, *applicants], num_returns=1)
            worker, job = busy.pop(call) if call in busy else (applicants.pop(call), None)
            try:
                outcomes = ray.get(call)
            except ray.exceptions.RayError as error:
                # The worker was restarted as often as allowed. One that never started also fails a job, or we would
                # hire new ones forever.
                yield from (Outcome.lost(batch, error) for batch in job or waiting.pop())
                continue
            yield from outcomes
            if waiting and not any(outcome.device_lost for outcome in outcomes):
                job = waiting.pop()
                busy[worker.train.remote(job, self.settings)] = worker, job

    def _hire(self) -> Any:
        options = self.settings.backend
        return (
            self.ray.remote(Worker)
            .options(
                num_cpus=options["cpus"],
                num_gpus=options["gpus"],
                max_restarts=options["retries"],
                max_task_retries=options["retries"],
            )
            .remote()
        )


class Worker:
    """A process of the cluster that trains one job after another, on the GPU that Ray has assigned to it.

    Consecutive batches of a mask share their preparation.
    """

    def start(self) -> list[Outcome]:
        """Return no outcomes, as soon as the process has started."""
        return []

    def train(self, job: Job, settings: Settings) -> list[Outcome]:
        return perform(job, settings)
