"""Throughput of ``pagnn-bench run``: in one process, by default, and by default beside busy neighbours."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from pagnn_bench.bench.child import ChildError
from pagnn_bench.records.store import Store

ONE, DEFAULT, BUSY = "one process", "default", "default, beside neighbours"
METHODS, DATA = ("zero", "pagnn_m", "pagnn_n", "mf"), ("synthetic",)
# The keys that each way sets; all others keep their defaults.
WAYS: dict[str, dict[str, Any]] = {ONE: {"n_jobs": 1, "threads": 1}, DEFAULT: {}, BUSY: {}}
AUTO = {"n_jobs": "auto", "threads": 1}  # the defaults, for the table
# Of accuracies: another stack rounds differently, which can move the epoch in which a trial stops.
TOLERANCE = 0.01


def measure_parallel(
    words: Sequence[str], cores: int, repeats: int, say: Callable[[str], None]
) -> Iterator[list[dict[str, Any]]]:
    """The rows of all ways so far, after every round; start-up counts.

    Args:
        words: the sweep, as for ``run -m``.
        cores: how many it may use; also the number of busy neighbours.
        repeats: rounds over all ways in turn.
        say: prints progress.

    Raises:
        ChildError: a sweep failed, or its accuracies differ from those of one process.
    """
    rows = [{"way": way, **AUTO, **keys, "trials": 0, "seconds": []} for way, keys in WAYS.items()]
    for number in range(repeats):
        expected: dict[tuple[str, int, int], float] = {}
        for row in rows:
            say(f"round {number + 1} of {repeats}: {row['way']}")
            own = [f"{key}={value}" for key, value in WAYS[row["way"]].items()]
            with _busy_neighbours(cores) if row["way"] == BUSY else nullcontext():
                seconds, accuracies = run_sweep([*words, *own], cores)
            expected = expected or accuracies
            _check_same(row["way"], accuracies, expected)
            row["trials"] = len(accuracies)
            row["seconds"].append(round(seconds, 3))
        yield rows


def run_sweep(words: Sequence[str], cores: int) -> tuple[float, dict[tuple[str, int, int], float]]:
    """Run one sweep into a temporary folder; returns its seconds, and the test accuracy of every trial."""
    with tempfile.TemporaryDirectory(prefix="pagnn-bench-") as folder:
        command = [sys.executable, "-m", "pagnn_bench", "run", "-m", *words, f"results_dir={folder}"]
        environment = {**os.environ, "OMP_NUM_THREADS": str(cores)}  # limits n_jobs=auto
        start = time.perf_counter()
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        seconds = time.perf_counter() - start
        if done.returncode:
            raise ChildError((done.stderr.strip().splitlines() or ["failed"])[-1])
        store = Store(Path(folder))
        return seconds, {
            (cell.id, *place): trial.record["test_acc"]
            for cell in store.cells()
            for place, trial in store.load(cell).items()
        }


def _check_same(way: str, actual: Mapping[Any, float], expected: Mapping[Any, float]) -> None:
    if actual.keys() != expected.keys():
        raise ChildError(f"{way}: {len(actual)} trials, in one process {len(expected)}")
    largest = max(abs(actual[key] - expected[key]) for key in expected)
    if largest > TOLERANCE:
        raise ChildError(
            f"{way}: the accuracy of a trial is {100 * largest:.1f} points from that in one process"
        )


@contextmanager
def _busy_neighbours(number: int) -> Iterator[None]:
    """Processes of our own priority in a busy loop, one per core."""
    neighbours = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()


def median_seconds(row: Mapping[str, Any]) -> float:
    """The median over all rounds."""
    return statistics.median(row["seconds"])
