"""Throughput of a sweep as a table: how much faster it is on all cores, how much slower beside busy neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pagnn_bench.analysis.tables.layout import Table, TablePart, Value, three_digits
from pagnn_bench.bench.document import Document
from pagnn_bench.bench.machine import describe_machine
from pagnn_bench.bench.parallel import BUSY, DEFAULT, ONE, median_seconds
from pagnn_bench.bench.targets import MET, NOT_MET, SHARE_OF_CORES, SLOWDOWN
from pagnn_bench.config.text import count

HEADER = ["", "n_jobs", "threads", "precision", "s", "trials per minute", "ratio", "target", ""]


def parallel_table(document: Document) -> Table:
    """One row per way of running the sweep, with its ratio and target."""
    settings = document["settings"]
    rows = {row["way"]: row for row in document["rows"]}
    seconds = {way: median_seconds(row) for way, row in rows.items()}
    gain, loss = seconds[ONE] / seconds[DEFAULT], seconds[BUSY] / seconds[DEFAULT]
    least = SHARE_OF_CORES * settings["cores"]
    judged = {
        ONE: [Value(), Value(), Value()],
        DEFAULT: [Value(f"{gain:.2f} times faster"), Value(f"≥ {least:g}"), _verdict(gain >= least)],
        BUSY: [Value(f"{loss:.2f} times slower"), Value(f"≤ {SLOWDOWN:g}"), _verdict(loss <= SLOWDOWN)],
    }
    body = [[*_facts(row, settings["precision"]), *judged[way]] for way, row in rows.items()]
    caption = [
        f"One sweep ({', '.join(settings['methods'])} on {', '.join(settings['data'])}; "
        f"{count(rows[ONE]['trials'], 'trial')}), start-up included, on {count(settings['cores'], 'core')}; median "
        f"of {count(settings['repeats'], 'round')} over all ways in turn. All ways record the same accuracies.",
        "Neighbours: other processes of the same priority, one per core, in a busy loop.",
        describe_machine(document["machine"]),
    ]
    return Table("parallel", "Throughput of a sweep", caption, [TablePart([], HEADER, body)])


def _facts(row: Mapping[str, Any], precision: str) -> list[Value]:
    seconds = median_seconds(row)
    numbers = (f"{seconds:.1f}", three_digits(60 * row["trials"] / seconds))
    return [Value(str(row[key])) for key in ("way", "n_jobs", "threads")] + [
        Value(precision),
        *map(Value, numbers),
    ]


def _verdict(met: bool) -> Value:
    return Value(MET, verdict=MET) if met else Value(NOT_MET)
