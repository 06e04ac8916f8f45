"""Batches of trials that train as one stack: a unit of work that any process on any machine can do."""

from __future__ import annotations

import traceback
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagnn_bench.engine.outcome import Outcome
from pagnn_bench.engine.plan import Job, Settings
from pagnn_bench.engine.progress import Watcher
from pagnn_bench.records.provenance import collect_provenance

if TYPE_CHECKING:
    from pagnn_bench.engine.execute import Executor


@lru_cache(maxsize=1)
def _executor(device: str, threads: int | None, curve: bool, cache: str | None, anew: bool) -> Executor:
    """One per process, so that batches that follow each other share graphs and preparations."""
    from pagnn_bench.engine.execute import Executor, pick_device

    return Executor(pick_device(device), threads, curve, None if cache is None else Path(cache), anew)


def perform(job: Job, settings: Settings, watch: Watcher | None = None) -> list[Outcome]:
    """Train the batches of a job here and now. An error in it is an outcome; it never stops the others."""
    facts: dict[str, Any] = {"device": settings.device, "threads": settings.threads}
    try:
        executor = _executor(
            settings.device, settings.threads, settings.train_curve, settings.cache_dir, settings.force
        )
        facts = {"device": str(executor.device), "threads": executor.threads}
        return executor.run_together(job, watch)
    except (Exception, SystemExit) as error:  # a method that calls exit() ends its batch, not the sweep
        message, trace = f"{type(error).__name__}: {error}", traceback.format_exc()
        return [Outcome(batch, collect_provenance(**facts), error=message, traceback=trace) for batch in job]
