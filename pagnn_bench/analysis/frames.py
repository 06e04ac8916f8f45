"""Results as pandas data frames, for notebooks and scripts.

from pagnn_bench.analysis.frames import cells, trials

trials("results").groupby(["protocol", "data", "missing", "rate", "method"]).test_acc.mean()
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from pagnn_bench.analysis.metrics import find_metric
from pagnn_bench.analysis.tables.results import Key, Results, key_of, load_results
from pagnn_bench.config.arguments import results_folder
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.variants import find_variants
from pagnn_bench.records.store import Store, Trial


def trials(results: str | Path = "results") -> pd.DataFrame:
    """One row per trial: its cell, mask, seed, and its record without the curve; accuracies are shares.

    Settings that are not the default follow the name in brackets, such as ``pagnn_n[hidden=32]``. A trial that was
    trained more than once has the record that counts; a failed one has the reason.
    """
    return _frame((result.key, result.trials) for result in _load(results).all)


def trials_of(chosen: Sequence[tuple[Cell, Iterable[Trial]]]) -> pd.DataFrame:
    """As :func:`trials`, for these cells only."""
    variants = find_variants(cell for cell, _ in chosen)
    return _frame((key_of(cell, variants[cell.hash]), of_cell) for cell, of_cell in chosen)


def cells(results: str | Path = "results", metric: str = "accuracy") -> pd.DataFrame:
    """One row per cell that was run: mean and interval over masks in percent, the paper's number and the verdict.

    The mean of another ``metric`` (``macro_f1``, ``recall@10``, ``rmse``, ...) is empty where it was not recorded.
    """
    by_metric = _load(results).by(find_metric(metric))
    return pd.DataFrame([result.values() for result in by_metric.all if result.cell is not None])


def _frame(chosen: Iterable[tuple[Key, Iterable[Trial]]]) -> pd.DataFrame:
    rows = [
        vars(key)
        | {"mask": trial.mask}
        | {name: value for name, value in trial.record.items() if name != "curve"}
        for key, of_cell in chosen
        for trial in of_cell
    ]
    return pd.DataFrame(rows, columns=None if rows else [*Key.__dataclass_fields__, "mask", "seed", "status"])


def _load(results: str | Path) -> Results:
    return load_results(Store(results_folder(str(results))))
