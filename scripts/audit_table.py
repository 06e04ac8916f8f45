"""The measurements of audit_fsdcap.py as a table."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from pagnn_bench.analysis.published import EXTREME_DATASETS
from pagnn_bench.analysis.stats import mean_interval
from pagnn_bench.analysis.tables.layout import Table, TablePart, Value, signed
from pagnn_bench.analysis.tables.results import LABELS as OF_THE_PAPER
from pagnn_bench.analysis.tables.results import in_order

Trial = dict[str, Any]  # as the audit records it

LABELS = {**OF_THE_PAPER, **EXTREME_DATASETS}

PAIRS = (("public", "clean"), ("public", "method"), ("clean", "method"), ("clean", "diffusion"))


def audit_table(trials: Sequence[Trial]) -> Table:
    """Cells x inputs: test accuracy, and paired differences with their 95 % interval over splits."""
    cells: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        cells[trial["cell"]].append(trial)
    graphs = in_order((trial["data"] for trial in trials), EXTREME_DATASETS)
    ordered = sorted(
        cells.values(), key=lambda own: (graphs.index(own[0]["data"]), own[0]["missing"], own[0]["rate"])
    )
    inputs = list(dict.fromkeys(name for trial in trials for name in trial["inputs"]))
    pairs = [pair for pair in PAIRS if {*pair} <= {*inputs}]
    rows = [[Value(_where(own[0], trials)), *_numbers(own, inputs, pairs)] for own in ordered]
    protocols = ", ".join(dict.fromkeys(trial["protocol"] for trial in trials))
    caption = [
        f"Protocol {protocols}.",
        "Test accuracy in percent: mean of the means of splits, each with its own mask. Differences are in points, "
        "on the same splits, masks and initial weights, with the 95 % interval over splits.",
    ]
    head = ["", "splits x seeds", *inputs, *(f"{one} - {other}" for one, other in pairs)]
    return Table("audit", "Audit of FSD-CAP", caption, [TablePart([], head, rows)])


def _where(trial: Trial, trials: Sequence[Trial]) -> str:
    """Graph, missing type and rate, and what distinguishes a cell from others with the same."""
    place = ("data", "missing", "rate")
    same = [other for other in trials if all(other[key] == trial[key] for key in place)]
    settings = {"protocol": trial["protocol"], **trial["settings"]}
    different = [
        f"{key}={value}"
        for key, value in settings.items()
        if any({"protocol": other["protocol"], **other["settings"]}.get(key) != value for other in same)
    ]
    data, missing = (LABELS.get(trial[key], trial[key]) for key in ("data", "missing"))
    return ", ".join([data, missing, f"rate {trial['rate']:g}", *different])


def _numbers(own: Sequence[Trial], inputs: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[Value]:
    by_mask: dict[int, list[Trial]] = defaultdict(list)
    for trial in own:
        by_mask[trial["mask"]].append(trial)
    accuracy = {
        name: [
            100 * statistics.fmean(trial["inputs"][name]["test_acc"] for trial in same)
            for same in by_mask.values()
        ]
        for name in inputs
    }
    values = [Value(f"{len(by_mask)} x {len(own) / len(by_mask):g}")]
    values += [Value(f"{statistics.fmean(accuracy[name]):.2f}") for name in inputs]
    for one, other in pairs:
        differences = [first - second for first, second in zip(accuracy[one], accuracy[other], strict=True)]
        interval = mean_interval([[each] for each in differences])
        between = f"[{signed(interval.low)}, {signed(interval.high)}]" if interval else ""
        values.append(Value(signed(statistics.fmean(differences)), between))
    return values
