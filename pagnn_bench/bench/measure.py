"""Rounds over all contenders of a place, so that whatever else the machine does affects all of them alike."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pagnn_bench.bench.child import ChildError, memory_task, run_child
from pagnn_bench.bench.contenders import (
    MASK,
    Contender,
    Sample,
    choose_epochs,
    family_of,
    our_contender,
    reference_contender,
    reference_forms,
    reference_inputs,
)
from pagnn_bench.bench.speed import OURS, Row
from pagnn_bench.config.identity import Cell
from pagnn_bench.engine.prepare import graph_of, hide_mask, prepare


@dataclass(frozen=True)
class MeasureSettings:
    """How to measure.

    Attributes:
        seeds: numbers of stacked seeds.
        epochs: maximum number of epochs of a contender in a round.
        repeats: rounds.
        threads: CPU threads, None for one per usable core.
        device: where to train.
        memory: whether to measure peak memory, in a process for each contender.
        forms: which forms of the reference to measure.
        cache: folder of learned imputations, None for a temporary one.
    """

    seeds: Sequence[int]
    epochs: int
    repeats: int
    threads: int | None
    device: torch.device
    memory: bool
    forms: Sequence[str]
    cache: Path | None = None


@dataclass
class _Entry:
    """A contender and its measurements so far."""

    row: Row
    cell: Cell
    run: Contender
    inputs: str | None
    samples: list[Sample] = field(default_factory=list)


def measure_place(cells: Sequence[Cell], settings: MeasureSettings, say: Callable[[str], None]) -> list[Row]:
    """Measure all methods of one place (data, missing type and rate).

    Only contenders of the same place are compared, so one place is finished, and its memory freed, before the next.

    Args:
        cells: one per method.
        settings: how to measure.
        say: prints progress.
    """
    with tempfile.TemporaryDirectory(prefix="pagnn-bench-") as scratch:
        cache = settings.cache or Path(scratch)
        entries = [entry for cell in cells for entry in _enter(cell, settings, cache, Path(scratch), say)]
        for entry in entries:
            entry.row = replace(entry.row, epochs=choose_epochs(entry.run, entry.row.seeds, settings.epochs))
        for number in range(settings.repeats):
            say(f"round {number + 1} of {settings.repeats}, {len(entries)} contenders")
            for entry in entries:
                entry.samples.append(entry.run(entry.row.epochs))
        if settings.memory:
            say(f"peak memory, {len(entries)} processes")
        return [_finished(entry, settings, cache) for entry in entries]


def _enter(
    cell: Cell, settings: MeasureSettings, cache: Path, scratch: Path, say: Callable[[str], None]
) -> Iterator[_Entry]:
    """The contenders of one method; a further precision needs no second reference."""
    say(f"preparing {cell.method['name']}")
    masked = hide_mask(cell, MASK, settings.device, cache=cache)
    preparation = prepare(masked)
    row = Row(
        data=cell.data["name"],
        missing=cell.missing["name"],
        rate=cell.rate,
        method=cell.method["name"],
        label=str(cell.method.get("label", cell.method["name"])),
        family=family_of(masked.method),
        side=OURS,
        seeds=1,
        epochs=0,
        train_ms=[],
        eval_ms=[],
    )
    forms = [form for form in reference_forms(masked.method) if form in settings.forms]
    if masked.protocol.precision != "float32":
        forms, row = [], replace(row, precision=masked.protocol.precision)
    if forms:
        inputs = reference_inputs(masked, preparation.prepared)
        path = scratch / f"{cell.hash}.npz"
        np.savez(path, **inputs)  # type: ignore[arg-type]
        for form in forms:
            yield _Entry(replace(row, side=form), cell, reference_contender(masked, inputs, form), str(path))
    for seeds in settings.seeds:
        own = replace(row, seeds=seeds, prepare_seconds=round(preparation.seconds, 3))
        yield _Entry(own, cell, our_contender(masked, preparation.prepared, seeds), None)


def _finished(entry: _Entry, settings: MeasureSettings, cache: Path) -> Row:
    train_ms, eval_ms = ([getattr(s, key) for s in entry.samples] for key in ("train_ms", "eval_ms"))
    row = replace(entry.row, train_ms=train_ms, eval_ms=eval_ms)
    if not settings.memory:
        return row
    common = {"threads": settings.threads, "device": str(settings.device), "cache": str(cache)}
    try:
        answer = run_child(memory_task(entry.cell, row.side, row.seeds, entry.inputs, **common))
    except ChildError as error:
        contender = f"{row.method} {row.side} with {row.seeds} seeds"
        print(f"warning: peak memory of {contender} is unknown: {error}", file=sys.stderr)
        return row
    memory = {key: answer[key] for key in ("base_mb", "peak_mb", "device_mb") if key in answer}
    return replace(row, **memory)


def describe_place(cell: Cell) -> dict[str, Any]:
    """A place and the sizes of its graph."""
    graph = graph_of(cell)
    return {
        "data": cell.data["name"],
        "label": str(cell.data.get("label", cell.data["name"])),
        "missing": cell.missing["name"],
        "rate": cell.rate,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": graph.num_features,
        "classes": graph.num_classes,
        "hidden": cell.method.get("hidden"),
    }
