"""Seconds per epoch (section 4.3 of the paper, efficiency evaluation): preparation plus training, divided by epochs.

For two-stage methods the paper adds the time of filling in to that of training. Here every method does something once
per mask before it trains: MF and the like fill in and aggregate, PaGNN aggregates, GCNmf fits its mixture. All of it
counts, for all methods; otherwise those that work ahead would look faster than they are. Reading the graph, drawing
the mask and evaluation do not count. Only trials that trained alone (``stack`` 1) count, since a stack shares its work
among its seeds; each of them is one repeat.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from pagnn_bench.analysis.paper import DATASETS, METHODS
from pagnn_bench.analysis.stats import quartiles
from pagnn_bench.analysis.tables.layout import Table, TablePart, Value, three_digits
from pagnn_bench.analysis.tables.results import Key, Result, Results, in_order
from pagnn_bench.config.text import count

TIMING_PROTOCOL = "timing"  # of experiment=timing: the paper's training under its own name
REFERENCE = "mf"
TimedPlace: TypeAlias = "tuple[str, str, float]"  # data, missing, rate


@dataclass(frozen=True)
class Timing:
    """The repeats of one cell.

    Attributes:
        repeats: milliseconds per epoch, one entry per batch.
        prepare_share: share of the time spent on preparation, median over the repeats.
        where: device and threads, such as "cpu, 2 threads", or the name of a GPU; several if the repeats differ.
    """

    key: Key
    labels: dict[str, str]
    repeats: tuple[float, ...]
    prepare_share: float
    where: tuple[str, ...] = ()

    @property
    def median(self) -> float:
        return statistics.median(self.repeats)

    @property
    def place(self) -> TimedPlace:
        return self.key.data, self.key.missing, self.key.rate

    @cached_property
    def quartiles(self) -> tuple[float, float]:
        return quartiles(self.repeats)

    def record(self, reference: Timing | None) -> dict[str, Any]:
        """The entry of the JSON and CSV forms."""
        low, high = self.quartiles
        return {
            **vars(self.key),
            "ms_per_epoch": round(self.median, 4),
            "quartile_low": round(low, 4),
            "quartile_high": round(high, 4),
            "repeats": len(self.repeats),
            "prepare_share": round(self.prepare_share, 4),
            "ratio_to_mf": round(self.median / reference.median, 4) if reference else None,
        }


@dataclass(frozen=True)
class Timings:
    """The timings that results hold, in the order of methods, and the protocol they were measured under."""

    protocol: str | None
    all: list[Timing]

    @property
    def places(self) -> list[TimedPlace]:
        """Places with timings, in the paper's order of datasets."""
        places = {timing.place for timing in self.all}
        order = in_order((data for data, _, _ in places), DATASETS)
        return sorted(places, key=lambda place: (order.index(place[0]), *place[1:]))

    @property
    def headings(self) -> list[tuple[str, str]]:
        """The label of every place, and its missing type and rate if these differ."""
        labels = {timing.key.data: timing.labels["data"] for timing in self.all}
        one_kind = len({place[1:] for place in self.places}) == 1
        return [
            (labels[data], "" if one_kind else f"{missing} {rate:g}") for data, missing, rate in self.places
        ]

    @property
    def methods(self) -> list[str]:
        return in_order((timing.key.method for timing in self.all), METHODS)

    def at(self, place: TimedPlace) -> dict[str, Timing]:
        """Method → timing at one place."""
        return {timing.key.method: timing for timing in self.all if timing.place == place}

    def records(self) -> list[dict[str, Any]]:
        """The entries of the JSON and CSV forms."""
        return [timing.record(self.at(timing.place).get(REFERENCE)) for timing in self.all]


def read_timings(results: Results) -> Timings:
    """The timings of ``experiment=timing``, or else of the first protocol that has trials trained alone."""
    by_protocol: dict[str, list[Timing]] = {}
    for result in results.all:
        if timing := _timing(result):
            by_protocol.setdefault(result.key.protocol, []).append(timing)
    timed = [name for name in results.protocols if name in by_protocol]
    protocol = TIMING_PROTOCOL if TIMING_PROTOCOL in timed else next(iter(timed), None)
    timings = by_protocol[protocol] if protocol else []
    order = in_order((timing.key.method for timing in timings), METHODS)
    return Timings(protocol, sorted(timings, key=lambda timing: order.index(timing.key.method)))


def _timing(result: Result) -> Timing | None:
    batches = {trial.batch.path: trial.batch for trial in result.trials if trial.ok}
    alone = [b for b in batches.values() if b.facts.get("stack") == 1 and b.facts.get("seed_epochs")]
    if not alone:
        return None
    prepared = [batch.facts.get("prepare_seconds", 0.0) for batch in alone]
    spent = [ahead + batch.facts["train_seconds"] for ahead, batch in zip(prepared, alone)]
    repeats = tuple(1000 * total / batch.facts["seed_epochs"] for total, batch in zip(spent, alone))
    share = statistics.median(ahead / total if total else 0.0 for ahead, total in zip(prepared, spent))
    where = sorted({_where(batch.provenance) for batch in alone})
    return Timing(result.key, result.labels, repeats, share, tuple(where))


def _where(provenance: Mapping[str, Any]) -> str:
    device, threads = provenance.get("device", "unknown device"), provenance.get("threads")
    if gpu := provenance.get("gpu"):
        return str(gpu["name"])
    return f"{device}, {count(threads, 'thread')}" if device == "cpu" and threads else str(device)


def timing_table(timings: Timings) -> Table:
    """Milliseconds per epoch: methods x datasets, absolute and relative to MF."""
    labels = {timing.key.method: timing.labels["method"] for timing in timings.all}
    header = ["Method", *(f"{label} {kind}".strip() for label, kind in timings.headings)]
    columns = [timings.at(place) for place in timings.places]
    times = [
        [Value(labels[method]), *(_milliseconds(here.get(method)) for here in columns)]
        for method in timings.methods
    ]
    ratios = [
        [Value(labels[method]), *(_ratio(here.get(method), here.get(REFERENCE)) for here in columns)]
        for method in timings.methods
    ]
    parts = [
        TablePart([("", 1), (title, len(columns))], header, rows)
        for title, rows in (("ms per epoch", times), ("relative to MF", ratios))
        if any(value.text for row in rows for value in row[1:])
    ]
    return Table("timing", "Time per epoch", _caption(timings), parts)


def _caption(timings: Timings) -> list[str]:
    if not timings.all:
        return ["No trial has been timed alone yet: pagnn-bench run -m experiment=timing"]
    repeats = sorted({len(timing.repeats) for timing in timings.all})
    places = timings.places
    one_kind = len({place[1:] for place in places}) == 1
    return [
        "Milliseconds per training epoch of one network, evaluation excluded: median and quartiles over "
        f"{count(repeats[0], 'repeat') if len(repeats) == 1 else f'{repeats[0]} to {repeats[-1]} repeats'}; "
        "(preparation + training) / epochs, where preparation is all that a method does once per mask: filling "
        "in, fitting, aggregating.",
        f"Protocol {timings.protocol}" + (f", {places[0][1]}, rate {places[0][2]:g}." if one_kind else "."),
        f"Measured on: {'; '.join(sorted({where for timing in timings.all for where in timing.where}))}.",
    ]


def _milliseconds(timing: Timing | None) -> Value:
    if timing is None:
        return Value()
    low, high = timing.quartiles
    quartiles = f"{three_digits(low)}–{three_digits(high)}" if len(timing.repeats) > 1 else ""
    return Value(three_digits(timing.median), quartiles)


def _ratio(timing: Timing | None, reference: Timing | None) -> Value:
    return Value(f"{timing.median / reference.median:.2f}") if timing and reference else Value()
