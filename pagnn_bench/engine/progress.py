"""One progress bar over all trials of a command: ETA, current batch and running mean."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

from tqdm import tqdm

from pagnn_bench.config.identity import Cell
from pagnn_bench.config.text import count, duration
from pagnn_bench.engine.outcome import Outcome

# How often the bar is drawn: often on a terminal, rarely into a log file.
TERMINAL_SECONDS, LOG_SECONDS = 0.2, 30.0
TURN_SECONDS = 2.0  # how long the batch of one of several processes is shown


class Watcher:
    """Is notified while a batch trains; this one ignores it."""

    def epoch(self, epoch: int, finished: Sequence[Mapping[str, Any]]) -> None:
        """One epoch of the stack has ended, and these trials with it."""

    def report(self, text: str) -> None:
        """Progress of the preparation of a mask (a learned imputation may take minutes)."""


class UnderWay(NamedTuple):
    """A batch that another process is training: its own note on progress, and for how many seconds."""

    cell: Cell
    mask: int
    note: str
    seconds: float


class Progress(Watcher):
    """Counts trials as they finish; within a stack it shows the epoch, so that a long batch visibly moves.

    Args:
        trials: how many there are.
        shown: False draws nothing.
    """

    def __init__(self, trials: int, shown: bool = True) -> None:
        self._interval = TERMINAL_SECONDS if sys.stderr.isatty() else LOG_SECONDS
        self.bar = tqdm(
            total=trials,
            unit="trial",
            dynamic_ncols=True,
            smoothing=0,
            mininterval=self._interval,
            disable=not shown,
        )
        self._left = self._failed = 0
        # By cell, since batches of a cell are not consecutive: the plan is breadth first.
        self._by_cell: dict[str, list[float]] = {}
        self._accuracies: list[float] = []
        self._last_drawn = 0.0
        self._turn = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.bar.close()

    def start(self, cell: Cell, mask: int, trials: int) -> None:
        """A batch begins; counts whatever the last one left unfinished because it failed."""
        self._skip()
        self._left = trials
        self._accuracies = self._by_cell.setdefault(cell.hash, [])
        self.bar.set_description_str(f"{cell}, mask {mask}", refresh=False)

    def epoch(self, epoch: int, finished: Sequence[Mapping[str, Any]]) -> None:
        self._count(finished)
        self.report(f"epoch {epoch}")

    def report(self, text: str) -> None:
        if time.monotonic() - self._last_drawn >= self._interval:
            self._last_drawn = time.monotonic()
            self._draw(text)

    def under_way(self, tasks: Sequence[UnderWay]) -> None:
        """Show what other processes are training, one after the other, since a line has room for one."""
        if tasks and time.monotonic() - self._last_drawn >= max(self._interval, TURN_SECONDS):
            self._last_drawn = time.monotonic()
            self._turn += 1
            task = tasks[self._turn % len(tasks)]
            self.bar.set_description_str(f"{task.cell}, mask {task.mask}", refresh=False)
            others = f"{count(len(tasks) - 1, 'other')} under way" if len(tasks) > 1 else ""
            self._draw(", ".join(filter(None, (task.note, f"for {duration(task.seconds)}", others))))

    def counted(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """Pass on outcomes that were trained elsewhere, and count their trials."""
        for outcome in outcomes:
            self.start(outcome.batch.cell, outcome.batch.mask, len(outcome.batch.seeds))
            self._count(outcome.records)
            self._skip()
            self._draw()
            yield outcome

    def say(self, text: str) -> None:
        """Print a message above the bar."""
        self.bar.write(text, file=sys.stderr)

    def _count(self, finished: Sequence[Mapping[str, Any]]) -> None:
        finished = finished[: self._left]  # a stack that did not fit into memory starts over in halves
        good = [record["test_acc"] for record in finished if record["status"] == "ok"]
        self._accuracies += good
        self._failed += len(finished) - len(good)
        self._left -= len(finished)
        self.bar.update(len(finished))

    def _draw(self, text: str = "") -> None:
        notes = [text] if text else []
        if self._accuracies:
            notes.append(f"mean {100 * sum(self._accuracies) / len(self._accuracies):.2f} %")
        if self._failed:
            notes.append(f"{self._failed} failed")
        self.bar.set_postfix_str(", ".join(notes))

    def _skip(self) -> None:
        self._failed += self._left
        self.bar.update(self._left)
        self._left = 0
