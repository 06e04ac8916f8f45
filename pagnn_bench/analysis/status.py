"""The progress of the sweeps in a results folder, whichever machine they run on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean

from pagnn_bench.analysis.metrics import ACCURACY
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.text import count, duration, failure_reason
from pagnn_bench.config.variants import set_apart
from pagnn_bench.records.runs import read_runs
from pagnn_bench.records.store import Store, Trial

SCREENFUL = 40  # with more cells than this, only unfinished ones are shown
RECENT = 20  # batches over which trials per minute are counted


@dataclass(frozen=True)
class CellStatus:
    """One cell: settings that are not default, trials done, failed and still to do, reason of the last failure."""

    cell: Cell
    settings: str
    done: int
    failed: int
    todo: int
    accuracy: float | None
    reason: str | None


@dataclass(frozen=True)
class Status:
    """A results folder at one moment.

    Attributes:
        cells: every cell that has results or that a command requested.
        running: trials that running commands still have to train.
        per_minute: recent speed, None if unknown.
        jobs: jobs of a batch system whose commands still lack trials.
    """

    cells: list[CellStatus]
    running: int
    commands: int
    per_minute: float | None
    jobs: list[str]


def read_status(results_dir: Path) -> Status:
    """Read a results folder, possibly written by somebody else or on another machine."""
    store = Store(results_dir)
    runs = read_runs(results_dir)
    wanted: dict[str, set[tuple[int, int]]] = {}
    cells = {cell.id: cell for cell in store.cells()}
    for run in runs:
        for cell, asked in run.wanted:
            cells.setdefault(cell.id, cell)
            wanted.setdefault(cell.id, set()).update(asked)
    trials = {key: store.load(cell) for key, cell in cells.items()}
    settings = set_apart(cells.values())
    alive = [run for run in runs if run.alive]
    waiting = [run for run in runs if any(asked - trials[cell.id].keys() for cell, asked in run.wanted)]
    return Status(
        cells=[
            _cell_status(store, cells[key], settings[cells[key].hash], trials[key], wanted.get(key, set()))
            for key in sorted(cells)
        ],
        running=sum(run.left for run in alive),
        commands=len(alive),
        per_minute=_speed(
            (trial for each in trials.values() for trial in each.values()),
            since=min((run.started for run in alive or waiting), default=""),
            at_once=bool(alive),
        ),
        jobs=[job for run in waiting for job in run.jobs],
    )


def _cell_status(
    store: Store,
    cell: Cell,
    settings: str,
    trials: dict[tuple[int, int], Trial],
    wanted: set[tuple[int, int]],
) -> CellStatus:
    good = {key for key, trial in trials.items() if trial.ok}
    diverged = {key: trial for key, trial in trials.items() if not trial.ok}
    broken = store.failures(cell)
    reasons = [failure.error for failure in broken] or [t.record["reason"] for t in diverged.values()]
    failed = diverged.keys() | {(failure.mask, seed) for failure in broken for seed in failure.seeds}
    return CellStatus(
        cell=cell,
        settings=settings,
        done=len(good),
        failed=len(failed),
        todo=len(wanted - good - failed),
        accuracy=fmean(map(fmean, ACCURACY.values(trials.values()).values())) if good else None,
        reason=reasons[-1] if reasons else None,
    )


def _speed(trials: Iterable[Trial], since: str, at_once: bool) -> float | None:
    """Trials per minute over the last batches since a command began, by the times in their records.

    The batches that ended first were trained before that moment, so they count only if it is known when they began:
    with the command, unless its jobs had to queue (``at_once`` is False).
    """
    ended: Counter[str] = Counter()
    for trial in trials:
        when = trial.batch.provenance.get("time")
        if when and when >= since:
            ended[when] += 1
    recent = sorted(ended)[-RECENT:]
    if at_once and recent and len(ended) < RECENT:
        recent = [since, *(when for when in recent if when != since)]
    if len(recent) < 2:
        return None
    span = (datetime.fromisoformat(recent[-1]) - datetime.fromisoformat(recent[0])).total_seconds()
    return 60 * sum(ended[when] for when in recent[1:]) / span if span > 0 else None


def render(status: Status, every: bool = False) -> str:
    """The status as lines for a terminal; with many cells, finished ones only if ``every`` is set."""
    if not status.cells:
        return "Nothing has been run yet."
    listed = [item for item in status.cells if item.failed or item.todo]
    if every or len(status.cells) <= SCREENFUL:
        listed = status.cells
    lines = _table(listed) if listed else []
    if hidden := len(status.cells) - len(listed):
        lines.append(f"{count(hidden, 'finished cell')} not shown (--all shows them)")
    return "\n".join([*lines, f"{_total(status)}."])


def _table(items: Sequence[CellStatus]) -> list[str]:
    """One aligned line per cell, followed by the reason of its last failure."""
    head = ("cell", "done", "failed", "to do", "accuracy")
    rows = [_row(item) for item in items]
    widths = [max(map(len, column)) for column in zip(head, *rows)]

    def line(row: tuple[str, ...]) -> str:
        numbers = (text.rjust(width) for text, width in zip(row[1:], widths[1:]))
        return "  ".join((row[0].ljust(widths[0]), *numbers)).rstrip()

    lines = [line(head)]
    for row, item in zip(rows, items):
        lines.append(line(row))
        if item.reason and item.failed:
            lines.append(f"    last failure: {failure_reason(item.reason)}")
    return lines


def _row(item: CellStatus) -> tuple[str, ...]:
    accuracy = "" if item.accuracy is None else f"{item.accuracy:.2f} %"
    name = f"{item.cell}, {item.cell.protocol['name']}" + (f" ({item.settings})" if item.settings else "")
    return name, str(item.done), str(item.failed), str(item.todo), accuracy


def _total(status: Status) -> str:
    """All cells together: what is done, what is running, and when it will finish."""
    done, failed, todo = (
        sum(getattr(item, key) for item in status.cells) for key in ("done", "failed", "todo")
    )
    total = f"{count(len(status.cells), 'cell')}: {count(done, 'trial')} done, {failed} failed, {todo} to do"
    if status.commands:
        total += f"; {count(status.commands, 'command')} running with {count(status.running, 'trial')} left"
        total += _speed_and_end(status.per_minute, status.running)
    elif status.jobs:
        which = " to ".join(dict.fromkeys((status.jobs[0], status.jobs[-1])))
        total += f"; jobs {which} were submitted (squeue shows what became of them)"
        total += _speed_and_end(status.per_minute, todo)
    elif todo or failed:
        total += "; no command is running (start the same one again to continue)"
    return total


def _speed_and_end(per_minute: float | None, left: int) -> str:
    if not per_minute:
        return ""
    digits = 0 if per_minute >= 10 else 1
    return f", {per_minute:.{digits}f} trials per minute, about {duration(60 * left / per_minute)} to go"
