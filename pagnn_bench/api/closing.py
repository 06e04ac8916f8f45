"""The closing lines of ``pagnn-bench run``: what came out, and where it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pagnn_bench.analysis.summary import describe
from pagnn_bench.config.text import count, one_line
from pagnn_bench.engine.plan import Request
from pagnn_bench.engine.runner import told_apart
from pagnn_bench.records.store import Store


def show_results(requests: Sequence[Request], store: Store) -> None:
    """What came out, cell by cell, and where it is."""
    apart = told_apart(requests)
    for request in requests:
        trials = [trial for key, trial in store.load(request.cell).items() if key in request.trials]
        lines = describe(request.cell, trials, apart[request.cell.hash])
        print(*lines, *failure_lines(request, store), sep="\n")
    print(f"Records: {records_of(requests, store)}")


def records_of(requests: Sequence[Request], store: Store) -> Path:
    """Where the records of these cells are."""
    folder = store.folder(requests[0].cell) if len(requests) == 1 else store.cells_dir
    # Trials that came with a repository have no files of their own, only rows in its tables.
    return folder if folder.exists() else store.results_dir / "collected"


def failure_lines(request: Request, store: Store) -> list[str]:
    """What went wrong in a cell: one line per batch that broke off, one for every reason that trials failed for."""
    broken = [
        f"  failed: mask {failure.mask}, {count(len(failure.seeds), 'seed')}: {one_line(failure.error)} "
        f"(traceback in {failure.path})"
        for failure in store.failures(request.cell)
    ]
    trials = store.load(request.cell)
    reasons = Counter(
        one_line(trials[key].record.get("reason", "unknown"))
        for key in sorted(request.trials & trials.keys())
        if not trials[key].ok
    )
    return broken + [f"  failed: {count(number, 'trial')}: {reason}" for reason, number in reasons.items()]
