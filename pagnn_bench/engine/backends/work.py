"""Train the batches of one job: a unit of work that any process on any machine can do."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagnn_bench.engine.outcome import Outcome
from pagnn_bench.engine.plan import Job, Settings
from pagnn_bench.engine.progress import Watcher
from pagnn_bench.records.provenance import collect_provenance

if TYPE_CHECKING:
    from pagnn_bench.engine.execute import Executor, Trained


TOO_LARGE = "Not even one trial fits: try device=cpu or a smaller method.hidden, or stop other programs."


def _make_executor(
    device: str,
    threads: int | None,
    curve: bool,
    cache: str | None,
    relearn: bool,
    keep: Callable[[Trained], None] | None,
) -> Executor:
    from pagnn_bench.engine.device import pick_device
    from pagnn_bench.engine.execute import Executor

    return Executor(
        pick_device(device), threads, curve, None if cache is None else Path(cache), relearn, keep
    )


# One per process, so that consecutive batches share graphs and preparations.
_shared_executor = lru_cache(maxsize=1)(_make_executor)


def perform(
    job: Job,
    settings: Settings,
    watch: Watcher | None = None,
    keep: Callable[[Trained], None] | None = None,
) -> list[Outcome]:
    """Train the batches of a job in this process. An error becomes an outcome; it never stops other jobs.

    Args:
        job, settings: what to train, and how.
        watch: is notified of progress.
        keep: is called with every trial that succeeded and its network.
    """
    facts: dict[str, Any] = {"device": settings.device, "threads": settings.threads}
    executor = None
    try:
        # An executor that passes networks on is not reused.
        make = _shared_executor if keep is None else _make_executor
        curve, cache = settings.train_curve, settings.cache_dir
        executor = make(settings.device, settings.threads, curve, cache, settings.force, keep)
        facts = executor.facts
        return executor.run_together(job, watch)
    except (Exception, SystemExit) as error:  # a method that calls exit() ends its batch, not the sweep
        from pagnn_bench.engine.faults import is_device_lost, is_out_of_memory

        message, trace = f"{type(error).__name__}: {error}", traceback.format_exc()
        if is_out_of_memory(error):
            message = f"{message} {TOO_LARGE}"
        begun = executor is not None
        lost = not begun or is_device_lost(error, executor.device if executor else None)
        provenance = collect_provenance(**facts)
        return [
            Outcome(batch, provenance, error=message, traceback=trace, device_lost=lost, begun=begun)
            for batch in job
        ]
