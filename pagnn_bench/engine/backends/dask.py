"""A Dask cluster: one future a batch, outcomes streamed to the driver, which alone writes results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pagnn_bench.config.errors import RequestError
from pagnn_bench.engine.backends.extras import need
from pagnn_bench.engine.backends.work import perform
from pagnn_bench.engine.outcome import Outcome
from pagnn_bench.engine.plan import Batch, Settings
from pagnn_bench.engine.progress import Progress


class DaskBackend:
    """Trains on the workers of the scheduler at ``backend.address``; they need no storage of ours.

    A batch whose worker is lost goes to another one; Dask gives up after as many losses as the scheduler allows, and
    the batch is then a failed outcome like any other.
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

    def run(self, batches: Sequence[Batch], progress: Progress) -> Iterator[Outcome]:
        """The outcomes, each as soon as it is there."""
        yield from progress.counted(self._outcomes(batches))

    def _outcomes(self, batches: Sequence[Batch]) -> Iterator[Outcome]:
        with self.client as client:
            # Not pure: two commands may ask for the same batch, and a forced one must not get an earlier outcome.
            futures = {client.submit(perform, batch, self.settings, pure=False): batch for batch in batches}
            for future in self.distributed.as_completed(futures):
                error = future.exception()
                yield future.result() if error is None else Outcome.lost(futures[future], error)
                future.release()  # the outcome need not stay in the cluster's memory
