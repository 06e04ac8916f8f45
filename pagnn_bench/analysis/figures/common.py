"""What the figures share: names, colours and the order of panels."""

from __future__ import annotations

from collections.abc import Iterable

from pagnn_bench.analysis.figures.canvas import INK, Look
from pagnn_bench.analysis.paper import METHODS
from pagnn_bench.analysis.published import published_under
from pagnn_bench.analysis.tables.layout import signed
from pagnn_bench.analysis.tables.results import Result, in_order
from pagnn_bench.analysis.tables.timing import Timing

LONGEST_LABEL = 20


def look_of(results: Iterable[Result | Timing]) -> Look:
    """Colours and markers for the methods of these results."""
    return Look(in_order((result.key.method for result in results), METHODS))


def grouped(results: Iterable[Result]) -> dict[tuple[str, str], list[Result]]:
    """(missing, data) → results, in the order of the paper."""
    found: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        found.setdefault((result.key.missing, result.key.data), []).append(result)
    return found


def title(result: Result) -> str:
    """Of a panel."""
    return f"{result.labels['data']}, {result.labels['missing']}"


def short_name(result: Result | Timing) -> str:
    """The method, short enough for an axis."""
    label = result.labels["method"]
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"


def legend(results: Iterable[Result | Timing], look: Look, paper: bool = False) -> list[tuple[str, str, str]]:
    """Entries for :attr:`Figure.legend`, with one for published points if asked for."""
    results = list(results)
    labels = {result.key.method: short_name(result) for result in results}
    methods = in_order(labels, METHODS)
    entries = [(labels[name], look.colour(name), look.marker(name)) for name in methods]
    return (
        [*entries, (f"{published_under(results[0].key.protocol).whose} numbers", INK, "paper")]
        if paper
        else entries
    )


def panels_abreast(results: Iterable[Result]) -> int:
    """As many as the missing type with most datasets needs, so that each type has a row of its own."""
    places = list(grouped(results))
    return max(sum(missing == kind for missing, _ in places) for kind, _ in places)


def describe(result: Result) -> str:
    """The hover text of a point."""
    summary, interval = result.summary, result.summary.interval
    text = f"{short_name(result)}, rate {result.key.rate:g}: {result.mean:.2f} %"
    if interval is not None:
        text += f", 95 % interval {interval.low:.2f} to {interval.high:.2f}"
        text += " (seeds only)" if interval.over == "seeds" else ""
    text += f", n = {summary.trials}"
    if result.paper is not None and result.difference is not None:
        text += f"; {result.published.row} {result.paper:.2f} ({signed(result.difference)})"
    return text
