"""What a running command shows to others: which trials it wants, how many are done, and that it is alive.

    <results_dir>/runs/<name>.json

The file is rewritten as batches end and touched every half minute, so that ``pagnn-bench status`` on any machine can
tell a running sweep from a dead one by the age of the file alone.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from pagnn_bench.config.identity import Cell
from pagnn_bench.records.sealed import SealedFiles, names_in, write_sealed

HEARTBEAT_SECONDS = 30
ALIVE_SECONDS = 4 * HEARTBEAT_SECONDS  # if an unfinished file is older than this, its process is gone


class RunLog:
    """Keeps the file of one command up to date while it runs.

    Args:
        results_dir: the results folder.
        wanted: the cells that the command requests, with their trials as (mask, seed).
        to_train: how many trials it will train.
    """

    def __init__(
        self, results_dir: Path, wanted: Sequence[tuple[Cell, frozenset[tuple[int, int]]]], to_train: int
    ) -> None:
        started = datetime.now(UTC)
        name = f"{started:%Y%m%dT%H%M%S}-{os.urandom(3).hex()}.json"
        self.path = results_dir / "runs" / name
        self._body: dict[str, Any] = {
            "kind": "run",
            "started": started.isoformat(timespec="seconds"),
            "state": "running",
            "to_train": to_train,
            "trained": 0,
            "wanted": [{"cell": cell.description(), "trials": _by_mask(trials)} for cell, trials in wanted],
        }
        self._stop = threading.Event()
        self._pulse = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Self:
        write_sealed(self.path, self._body)
        self._pulse.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._stop.set()
        if kind is not None:
            self._body["state"] = "stopped"
        elif self._body["state"] == "running":  # submitted jobs have only begun
            self._body["state"] = "done"
        write_sealed(self.path, self._body)

    def done(self, trials: int) -> None:
        """Count this many more trials as ended."""
        self._body["trained"] += trials
        write_sealed(self.path, self._body)

    def submitted(self, jobs: Sequence[str]) -> None:
        """Note that jobs of a batch system will train what this command wants."""
        self._body |= {"state": "submitted", "jobs": list(jobs)}

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT_SECONDS):
            with suppress(OSError):  # the file system may be away for a while: the next beat will do
                os.utime(self.path)


def _by_mask(trials: frozenset[tuple[int, int]]) -> dict[str, list[int]]:
    masks = sorted({mask for mask, _ in trials})
    return {str(mask): sorted(seed for own, seed in trials if own == mask) for mask in masks}


@dataclass(frozen=True)
class Run:
    """A command, as read from its file.

    Attributes:
        wanted: the cells that it requested, with their trials as (mask, seed).
        left: trials that it still has to train.
        alive: whether it is running now.
        jobs: the jobs of a batch system that train in its place.
        started: when it started, in ISO format.
    """

    wanted: list[tuple[Cell, set[tuple[int, int]]]]
    left: int
    alive: bool
    jobs: list[str]
    started: str


def read_runs(results_dir: Path) -> list[Run]:
    """All commands that left a file in a results folder, the oldest first."""
    folder, files, runs = results_dir / "runs", SealedFiles(), []
    for name in names_in(folder):
        body = files.read(folder / name, kind="run") if name.endswith(".json") else None
        if body is None:
            continue
        wanted = [
            (
                Cell(**item["cell"]),
                {(int(mask), seed) for mask, seeds in item["trials"].items() for seed in seeds},
            )
            for item in body["wanted"]
        ]
        alive = body["state"] == "running" and _age(folder / name) < ALIVE_SECONDS
        left = body["to_train"] - body["trained"]
        runs.append(Run(wanted, left, alive, body.get("jobs", []), body["started"]))
    return runs


def _age(path: Path) -> float:
    """Seconds since a file was touched, by our clock; if that was set back, the file looks young, not dead."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return float("inf")
