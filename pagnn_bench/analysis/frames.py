"""Results as pandas data frames, for notebooks and scripts of one's own.

from pagnn_bench.analysis.frames import cells, trials

trials("results").groupby(["protocol", "data", "missing", "rate", "method"]).test_acc.mean()
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pagnn_bench.analysis.tables.results import Results, load_results
from pagnn_bench.config.arguments import results_folder
from pagnn_bench.records.store import Store

AXES = ("method", "data", "missing", "rate", "protocol")


def trials(results: str | Path = "results") -> pd.DataFrame:
    """One row a trial: where it stands, mask, seed, and its record without the curve; accuracies are shares.

    A setting that is not the default stands in brackets behind its name, such as ``pagnn_n[hidden=32]``. Of a trial
    that was trained more than once the record that counts is given, of one that failed the reason.
    """
    rows = [
        {axis: getattr(result.key, axis) for axis in AXES}
        | {"mask": trial.mask}
        | {key: value for key, value in trial.record.items() if key != "curve"}
        for result in _load(results).all
        for trial in result.trials
    ]
    return pd.DataFrame(rows)


def cells(results: str | Path = "results") -> pd.DataFrame:
    """One row a cell that was run: mean and interval over masks in percent, the paper's number and the verdict."""
    return pd.DataFrame([result.values() for result in _load(results).all if result.cell is not None])


def _load(results: str | Path) -> Results:
    return load_results(Store(results_folder(str(results))))
