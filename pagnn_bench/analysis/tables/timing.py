"""Seconds per epoch (section 4.3 of the paper, efficiency evaluation): preparation and training, over the epochs.

The paper adds the time of filling in to that of training for methods in two stages. Here every method does something
once per mask before it trains: MF and its like fill in and aggregate, PaGNN aggregates, GCNmf fits its mixture. All of
it counts, for all methods, or those that do their work ahead would look faster than they are. Reading the graph and
drawing the mask are nobody's work and do not count, nor does evaluation. Only trials that trained alone (``stack`` 1)
count, since a stack shares its work among its seeds; each is one repeat.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pagnn_bench.analysis.paper import DATASETS, METHODS
from pagnn_bench.analysis.tables.layout import Part, Table, Value, three_digits
from pagnn_bench.analysis.tables.results import Key, Result, Results, in_order
from pagnn_bench.config.text import count

TIMING_PROTOCOL = "timing"  # of experiment=timing: the paper's training under a name of its own
REFERENCE = "mf"


@dataclass(frozen=True)
class Timing:
    """The repeats of one cell.

    Attributes:
        repeats: milliseconds per epoch, one a batch.
        prepare_share: share of the time that went into preparation, median over the repeats.
        where: device and threads, as in "cpu, 2 threads"; more than one if the repeats differ in that.
    """

    key: Key
    labels: dict[str, str]
    repeats: tuple[float, ...]
    prepare_share: float
    where: tuple[str, ...] = ()

    @property
    def median(self) -> float:
        return statistics.median(self.repeats)

    @cached_property
    def quartiles(self) -> tuple[float, float]:
        """First and third quartile of the repeats, inclusive."""
        if len(self.repeats) == 1:
            return self.repeats[0], self.repeats[0]
        low, _, high = statistics.quantiles(self.repeats, n=4, method="inclusive")
        return low, high

    def record(self, reference: Timing | None) -> dict[str, Any]:
        """The entry of the JSON and CSV forms."""
        low, high = self.quartiles
        return {
            **{name: getattr(self.key, name) for name in ("method", "data", "missing", "rate", "protocol")},
            "ms_per_epoch": round(self.median, 4),
            "quartile_low": round(low, 4),
            "quartile_high": round(high, 4),
            "repeats": len(self.repeats),
            "prepare_share": round(self.prepare_share, 4),
            "ratio_to_mf": round(self.median / reference.median, 4) if reference else None,
        }


def timing_protocol(results: Results) -> str | None:
    """Where timings come from: the protocol of ``experiment=timing``, or else the first that has lone trials."""
    having = [name for name in results.protocols if measure(results.under(name))]
    return TIMING_PROTOCOL if TIMING_PROTOCOL in having else next(iter(having), None)


def measure(results: Iterable[Result]) -> list[Timing]:
    """The timings among these results, in the order of methods."""
    found = []
    for result in results:
        batches = {trial.batch.path: trial.batch for trial in result.trials if trial.ok}
        lone = [b for b in batches.values() if b.facts.get("stack") == 1 and b.facts.get("seed_epochs")]
        if not lone:
            continue
        alone, where = [batch.facts for batch in lone], sorted({_where(batch.provenance) for batch in lone})
        prepared = [facts.get("prepare_seconds", 0.0) for facts in alone]
        spent = [ahead + facts["train_seconds"] for ahead, facts in zip(prepared, alone)]
        repeats = tuple(1000 * total / facts["seed_epochs"] for total, facts in zip(spent, alone))
        share = statistics.median(ahead / total if total else 0.0 for ahead, total in zip(prepared, spent))
        found.append(Timing(result.key, result.labels, repeats, share, tuple(where)))
    order = in_order((timing.key.method for timing in found), METHODS)
    return sorted(found, key=lambda timing: order.index(timing.key.method))


def _where(provenance: Mapping[str, Any]) -> str:
    device, threads = provenance.get("device", "unknown device"), provenance.get("threads")
    return f"{device}, {count(threads, 'thread')}" if device == "cpu" and threads else str(device)


def timed_places(timings: Iterable[Timing]) -> list[tuple[str, str, float]]:
    """(data, missing, rate) of the timings, in the paper's order of datasets."""
    places = {(timing.key.data, timing.key.missing, timing.key.rate) for timing in timings}
    order = in_order((data for data, _, _ in places), DATASETS)
    return sorted(places, key=lambda place: (order.index(place[0]), *place[1:]))


def at(timings: Iterable[Timing], place: tuple[str, str, float]) -> dict[str, Timing]:
    """Method → timing at one (data, missing, rate)."""
    return {
        timing.key.method: timing
        for timing in timings
        if (timing.key.data, timing.key.missing, timing.key.rate) == place
    }


def timing_table(timings: Sequence[Timing], protocol: str | None) -> Table:
    """Milliseconds per epoch: methods x datasets, absolute and as ratio to MF."""
    places = timed_places(timings)
    methods = in_order((timing.key.method for timing in timings), METHODS)
    labels = {timing.key.method: timing.labels["method"] for timing in timings}
    names = {timing.key.data: timing.labels["data"] for timing in timings}
    one_kind = len({place[1:] for place in places}) == 1
    heads = [
        names[data] if one_kind else f"{names[data]} {missing} {rate:g}" for data, missing, rate in places
    ]
    lines = [(method, [at(timings, place) for place in places]) for method in methods]
    times = [
        [Value(labels[method]), *(_milliseconds(here.get(method)) for here in line)] for method, line in lines
    ]
    ratios = [
        [Value(labels[method]), *(_ratio(here.get(method), here.get(REFERENCE)) for here in line)]
        for method, line in lines
    ]
    repeats = sorted({len(timing.repeats) for timing in timings})
    caption = (
        [
            "Milliseconds per training epoch of one network, evaluation excluded: median and quartiles over "
            f"{count(repeats[0], 'repeat') if len(repeats) == 1 else f'{repeats[0]} to {repeats[-1]} repeats'}; "
            "(preparation + training) / epochs, where preparation is all that a method does once per mask: filling "
            "in, fitting, aggregating.",
            f"Protocol {protocol}" + (f", {places[0][1]}, rate {places[0][2]:g}." if one_kind else "."),
            f"Measured on: {'; '.join(sorted({where for timing in timings for where in timing.where}))}.",
        ]
        if timings
        else ["No trial has been timed alone yet: pagnn-bench run -m experiment=timing"]
    )
    header = ["Method", *heads]
    parts = [
        Part([("", 1), (title, len(places))], header, rows)
        for title, rows in (("ms per epoch", times), ("relative to MF", ratios))
        if any(value.text for row in rows for value in row[1:])
    ]
    return Table("timing", "Time per epoch", caption, parts)


def _milliseconds(timing: Timing | None) -> Value:
    if timing is None:
        return Value()
    low, high = timing.quartiles
    quartiles = f"{three_digits(low)}–{three_digits(high)}" if len(timing.repeats) > 1 else ""
    return Value(three_digits(timing.median), quartiles)


def _ratio(timing: Timing | None, reference: Timing | None) -> Value:
    return Value(f"{timing.median / reference.median:.2f}") if timing and reference else Value()
