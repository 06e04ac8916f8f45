"""One batch of trials as a unit of work that any process on any machine can do."""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagnn_bench.engine.outcome import Outcome
from pagnn_bench.engine.plan import Batch, Settings
from pagnn_bench.engine.progress import Watcher
from pagnn_bench.records.provenance import collect_provenance

if TYPE_CHECKING:
    from pagnn_bench.engine.execute import Executor


@lru_cache(maxsize=1)
def _executor(device: str, threads: int | None, curve: bool, cache: str | None, anew: bool) -> Executor:
    """One per process, so that batches that follow each other share graphs and preparations."""
    from pagnn_bench.engine.execute import Executor, pick_device

    return Executor(pick_device(device), threads, curve, None if cache is None else Path(cache), anew)


def perform(batch: Batch, settings: Settings, watch: Watcher | None = None) -> Outcome:
    """Train one batch here and now. An error in it is an outcome; it never stops the others."""
    facts: dict[str, Any] = {"device": settings.device, "threads": settings.threads}
    try:
        executor = _executor(
            settings.device, settings.threads, settings.train_curve, settings.cache_dir, settings.force
        )
        facts = {"device": str(executor.device), "threads": executor.threads}
        result = executor.run(batch.cell, batch.mask, batch.seeds, watch)
    except (Exception, SystemExit) as error:  # a method that calls exit() ends its batch, not the sweep
        message = f"{type(error).__name__}: {error}"
        return Outcome(batch, collect_provenance(**facts), error=message, traceback=traceback.format_exc())
    provenance = collect_provenance(**facts, data_checksum=result.data_checksum)
    return Outcome(batch, provenance, result.records, result.facts)


def spread_over_gpus(batches: Mapping[int, Batch], settings: Settings) -> list[tuple[int, Batch, Settings]]:
    """Give every batch its device: the visible GPUs in turn where there are several, otherwise as asked."""
    gpus = visible_gpus() if settings.device in ("auto", "cuda") else 0
    if gpus < 2:
        return [(key, batch, settings) for key, batch in batches.items()]
    devices = itertools.cycle(f"cuda:{k}" for k in range(gpus))
    return [(key, batch, replace(settings, device=next(devices))) for key, batch in batches.items()]


def visible_gpus() -> int:
    import torch

    return torch.cuda.device_count()
