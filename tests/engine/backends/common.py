"""A small sweep on the built-in graph, and what it gives when nothing disturbs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pagnn_bench.records.store import Store

SWEEP = (
    "-m",
    "method=zero,pagnn_n",
    "data=synthetic",
    "data.num_nodes=400",
    "data.num_val=60",
    "data.num_test=100",
    "protocol=quick",
    "protocol.max_epochs=30",
    "masks=3",
    "seeds=2",
    "threads=1",
)


def pagnn_bench(*arguments: str, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pagnn_bench", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)
    if check and done.returncode:
        raise AssertionError(
            f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done


def accuracies(results: Path) -> dict[tuple[str, int, int], float]:
    """Every finished trial of a results folder, once."""
    store = Store(results)
    return {
        (cell.id, mask, seed): trial.record["test_acc"]
        for cell in store.cells()
        for (mask, seed), trial in store.load(cell).items()
        if trial.ok
    }
