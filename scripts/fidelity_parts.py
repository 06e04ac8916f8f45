"""The measured parts of docs/fidelity.md; :mod:`measured_parts` passes them on to :mod:`write_docs`."""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from collections.abc import Callable

from plain_table import plain_table

from pagnn_bench.analysis.paper import DATASETS, RATES, TABLES, paper_entries
from pagnn_bench.analysis.tables.layout import signed
from pagnn_bench.analysis.tables.leads import PROTOCOLS
from pagnn_bench.analysis.tables.results import LABELS, Result, Results, by_method

FIDELITY = "fidelity"  # the protocol's name in runs that measure the effect of a departure from public code
# A rival this many points below its published number counts as our defect until an experiment explains it.
DEFECT = 3.0
LONG_BEFORE = 100  # epochs


def _ledger(method: str) -> Callable[[Results], str]:
    """A rival's printed number next to ours as published, tuned and shared, with a verdict."""

    def part(results: Results) -> str:
        by_protocol = {name: by_method(results.under(name)).get(method, {}) for name in PROTOCOLS}
        entries = paper_entries()
        rows = []
        for missing, data in itertools.product(TABLES.values(), DATASETS):
            for rate in RATES:
                here = {name: cells.get((missing, data, rate)) for name, cells in by_protocol.items()}
                entry = entries.get((missing, data, method, rate))
                if any(here.values()):
                    texts = ["" if r is None else f"{r.mean:.1f}" for r in here.values()]
                    printed = f"{entry.accuracy:.1f}" if entry else ""
                    place = [LABELS[missing], DATASETS[data], f"{rate:g}", printed]
                    rows.append([*place, *texts, _fidelity(here["paper"])])
        head = ["", "dataset", "rate", "printed", *PROTOCOLS.values(), "as published against printed"]
        return plain_table(head, rows) if rows else "Nothing run yet."

    return part


# Column of the table of normalised rows → method and protocol.
NORMALISED = {
    "MF as published": ("mf", "paper"),
    "MF, rows normalised": ("mf", "paper[feature_norm=row]"),
    "PaGNN-N, the same": ("pagnn_n", "paper[feature_norm=row,weight_decay=0.0005]"),
}


def row_normalised(results: Results) -> str:
    """The printed numbers of MF beside ours, as published and with rows divided by their sums: test accuracy."""
    means = {
        column: {
            (r.key.missing, r.key.data, r.key.rate): r.mean
            for r in results.under(protocol)
            if r.key.method == method and r.mean is not None
        }
        for column, (method, protocol) in NORMALISED.items()
    }
    entries, rows = paper_entries(), []
    for missing, data, rate in itertools.product(TABLES.values(), DATASETS, RATES):
        place = (missing, data, rate)
        printed = entries.get((missing, data, "mf", rate))
        if printed and place in means["MF, rows normalised"]:
            ours = [f"{found[place]:.1f}" if place in found else "" for found in means.values()]
            gap = signed(means["MF, rows normalised"][place] - printed.accuracy, 1)
            rows.append([LABELS[missing], DATASETS[data], f"{rate:g}", f"{printed.accuracy:.1f}", *ours, gap])
    head = ["", "dataset", "rate", "MF printed", *NORMALISED, "MF, rows normalised, against printed"]
    return plain_table(head, rows) if rows else "Nothing run yet."


def _fidelity(result: Result | None) -> str:
    if result is None or result.difference is None:
        return ""
    if result.difference < -DEFECT:
        return f"{signed(result.difference, 1)}: too low"
    return f"{signed(result.difference, 1)}{': higher' if result.difference > DEFECT else ''}"


def departures(results: Results) -> str:
    """Validation accuracy of variants of rivals, on a mask that is not reported: the effect of a departure."""
    forms: dict[tuple[str, str], dict[tuple[str, str, float], Result]] = defaultdict(dict)
    for result in results.all:
        if result.cell is not None and result.cell.protocol["name"] == FIDELITY and result.mean is not None:
            _, _, settings = result.key.protocol.partition("[")
            form = (result.labels["method"], settings.rstrip("]"))
            forms[form][result.key.data, result.key.missing, result.key.rate] = result
    places = sorted({place for line in forms.values() for place in line}, key=_data_order)
    head = ["method", "training"]
    head += [f"{DATASETS[data]}, {LABELS[missing]}, {rate:g}" for data, missing, rate in places]
    rows = [
        [name, settings, *(_validated(line.get(place)) for place in places)]
        for (name, settings), line in sorted(forms.items())
    ]
    return plain_table(head, rows) if rows else "Nothing run yet."


def _data_order(place: tuple[str, str, float]) -> tuple[int, str, float]:
    return [*DATASETS].index(place[0]), place[1], place[2]


def _validated(result: Result | None) -> str:
    if result is None:
        return ""
    return f"{statistics.fmean(100 * trial.record['val_acc'] for trial in result.trials if trial.ok):.1f}"


def early(results: Results) -> str:
    """How often a trial keeps an epoch long before that of its highest validation accuracy, and what that costs."""
    kept: dict[tuple[str, str], list[tuple[bool, float]]] = defaultdict(list)
    for result in results.under("paper"):
        for trial in result.trials:
            record = trial.record
            if trial.ok and "peak_epoch" in record:
                late = record["peak_epoch"] - record["best_epoch"] > LONG_BEFORE
                lost = 100 * (record["peak_val_acc"] - record["val_acc"])
                kept[result.labels["method"], result.labels["data"]].append((late, lost))
    rows = []
    for (method, data), trials in sorted(kept.items()):
        costs = [lost for late, lost in trials if late]
        share = f"{100 * len(costs) / len(trials):.1f} %"
        cost = f"{statistics.fmean(costs):.1f}" if costs else ""
        rows.append([method, data, str(len(trials)), share, cost])
    head = [
        "method",
        "dataset",
        "trials",
        f"kept over {LONG_BEFORE} epochs before the peak",
        "points below it",
    ]
    return plain_table(head, rows) if rows else "Nothing run yet."


FIDELITY_PARTS: dict[str, Callable[[Results], str]] = {
    "departures": departures,
    "early": early,
    "row_normalised": row_normalised,
    **{f"ledger_{name}": _ledger(name) for name in ("mf", "vae", "gain", "sat", "gcnmf", "fp", "pcfi")},
}
