"""What training in bfloat16 changes: pairs of trials that differ only in precision."""

from __future__ import annotations

import statistics
from collections import defaultdict

from pagnn_bench.analysis.paper import DATASETS, RATES
from pagnn_bench.analysis.stats import mean_interval
from pagnn_bench.analysis.tables.layout import Table, TablePart, Value, signed
from pagnn_bench.analysis.tables.results import Result, Results
from pagnn_bench.config.identity import canonical_json

NARROW = "bfloat16"


def precision_table(results: Results) -> Table | None:
    """bfloat16 minus float32 in test accuracy, by dataset, method and rate; None without any pair.

    A pair is a cell, mask and seed in both precisions: same mask, same initial weights, same dropout.
    """
    differences: dict[tuple[str, str, str, str], dict[float, Value]] = defaultdict(dict)
    for wide, narrow in _pairs(results):
        place = (wide.key.data, wide.labels["data"], wide.labels["missing"], wide.labels["method"])
        if value := _difference(wide, narrow):
            differences[place][wide.key.rate] = value
    if not differences:
        return None
    rates = [rate for rate in RATES if any(rate in line for line in differences.values())]
    datasets = list(DATASETS)
    rows = [
        [*map(Value, place[1:]), *(differences[place].get(rate, Value()) for rate in rates)]
        for place in sorted(differences, key=lambda place: (datasets.index(place[0]), place[2:]))
    ]
    caption = [
        f"Test accuracy in {NARROW} minus float32, in points: mean difference between single trials with the same "
        "mask and seed, then its 95 % interval over masks and the number of pairs."
    ]
    header = ["dataset", "missing", "method", *(f"{rate:g}" for rate in rates)]
    return Table("precision", "Precision", caption, [TablePart([], header, rows, 3)])


def _pairs(results: Results) -> list[tuple[Result, Result]]:
    """Cells in float32 with the same cell in bfloat16."""
    pairs: dict[str, dict[bool, Result]] = defaultdict(dict)
    for result in results.all:
        if result.cell is not None and result.key.data in DATASETS and result.key.rate in RATES:
            identity = result.cell.identity
            protocol = {key: value for key, value in identity["protocol"].items() if key != "precision"}
            narrow = result.cell.protocol.get("precision") == NARROW
            pairs[canonical_json({**identity, "protocol": protocol})][narrow] = result
    return [(pair[False], pair[True]) for pair in pairs.values() if len(pair) == 2]


def _difference(wide: Result, narrow: Result) -> Value | None:
    """Mean difference with its interval; None if no trial was run in both."""
    before, after = (
        {
            (trial.mask, trial.record["seed"]): 100 * trial.record["test_acc"]
            for trial in own.trials
            if trial.ok
        }
        for own in (wide, narrow)
    )
    by_mask: dict[int, list[float]] = defaultdict(list)
    for place in sorted(before.keys() & after.keys()):
        by_mask[place[0]].append(after[place] - before[place])
    if not by_mask:
        return None
    groups = list(by_mask.values())
    number, interval = sum(map(len, groups)), mean_interval(groups)
    mean = statistics.fmean(statistics.fmean(group) for group in groups)
    limits = f"{signed(interval.low, 1)} to {signed(interval.high, 1)}; " if interval else ""
    return Value(signed(mean), f"({limits}{number})")
