"""Where batches are trained: this machine, a Slurm cluster, Ray or Dask. Engines are imported only when chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from pagnn_bench.engine.outcome import Outcome
from pagnn_bench.engine.plan import Job, Settings
from pagnn_bench.engine.progress import Progress


class Backend(Protocol):
    """Trains the jobs of a plan, in whatever order; the outcomes of their batches come as soon as they are there."""

    def run(self, jobs: Sequence[Job], progress: Progress) -> Iterator[Outcome]: ...


def open_backend(settings: Settings) -> Backend:
    """Connect to the chosen engine, one of `OPTIONS`; a wrong address is told here, before anything is written."""
    name = settings.backend["name"]
    if name == "local":
        from pagnn_bench.engine.backends.local import ProcessBackend, SerialBackend

        return SerialBackend(settings) if settings.n_jobs == 1 else ProcessBackend(settings)
    if name == "ray":
        from pagnn_bench.engine.backends.ray import RayBackend

        return RayBackend(settings)
    from pagnn_bench.engine.backends.dask import DaskBackend

    return DaskBackend(settings)
