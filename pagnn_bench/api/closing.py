"""The closing lines of ``pagnn-bench run``: the results and where they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pagnn_bench.analysis.summary import describe
from pagnn_bench.config.text import count, failure_reason, one_line
from pagnn_bench.engine.plan import Request
from pagnn_bench.engine.runner import distinctions
from pagnn_bench.records.store import Failure, Store


def show_results(requests: Sequence[Request], store: Store) -> None:
    """Print the results, cell by cell, and the place of their records."""
    differing = distinctions(requests)
    for request in requests:
        trials = [trial for key, trial in store.load(request.cell).items() if key in request.trials]
        lines = describe(request.cell, trials, differing[request.cell.hash])
        print(*lines, *failure_lines(request, store), sep="\n")
    print(f"Records: {records_of(requests, store)}")


def records_of(requests: Sequence[Request], store: Store) -> Path:
    """Where the records of these cells are."""
    folder = store.folder(requests[0].cell) if len(requests) == 1 else store.cells_dir
    # Collected trials, such as those of a clone, have rows in tables but no files.
    return folder if folder.exists() else store.results_dir / "collected"


def failure_lines(request: Request, store: Store) -> list[str]:
    """What went wrong in a cell: one line for every reason, first those that ended whole batches."""
    by_reason: dict[str, list[Failure]] = {}
    for failure in store.failures(request.cell):
        by_reason.setdefault(failure_reason(failure.error), []).append(failure)
    ended = [_ended_batches(reason, failures) for reason, failures in by_reason.items()]
    trials = store.load(request.cell)
    diverged = Counter(
        one_line(trials[key].record.get("reason", "unknown"))
        for key in sorted(request.trials & trials.keys())
        if not trials[key].ok
    )
    return ended + [f"  failed: {count(number, 'trial')}: {reason}" for reason, number in diverged.items()]


def _ended_batches(reason: str, failures: Sequence[Failure]) -> str:
    """One line for all batches that ended for the same reason."""
    masks = {failure.mask for failure in failures}
    where = f"mask {failures[0].mask}" if len(masks) == 1 else f"{len(masks)} masks"
    seeds = sum(len(failure.seeds) for failure in failures)
    size = count(seeds, "seed" if len(masks) == 1 else "trial")
    traceback = "traceback" if len(failures) == 1 else "first traceback"
    return f"  failed: {where}, {size}: {reason} ({traceback} in {failures[0].path})"
