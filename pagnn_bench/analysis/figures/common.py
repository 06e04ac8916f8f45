"""What the figures share: names, colours, the order of panels, bands and scales."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator

from pagnn_bench.analysis.figures.canvas import INK, Look
from pagnn_bench.analysis.paper import METHODS
from pagnn_bench.analysis.published import published_under
from pagnn_bench.analysis.tables.layout import signed
from pagnn_bench.analysis.tables.results import Result, in_order
from pagnn_bench.analysis.tables.timing import Timing

LONGEST_LABEL = 20
BAND_FROM = 3  # masks: the t interval of two is over three times as wide as that of three
LINEAR_UP_TO = 4  # ratio of the largest value to the smallest


def look_of(results: Iterable[Result | Timing]) -> Look:
    """Colours and markers for the methods of these results."""
    return Look(in_order((result.key.method for result in results), METHODS))


def grouped(results: Iterable[Result]) -> dict[tuple[str, str], list[Result]]:
    """(missing, data) → results, in the order of the paper."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.key.missing, result.key.data), []).append(result)
    return groups


def title(result: Result) -> str:
    """Of a panel."""
    return f"{result.labels['data']}, {result.labels['missing']}"


def short_name(result: Result | Timing) -> str:
    """The method, short enough for an axis."""
    return shortened(result.labels["method"])


def shortened(label: str) -> str:
    """The label, cut off with an ellipsis if it is too long for an axis."""
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"


def legend(results: Iterable[Result | Timing], look: Look, paper: bool = False) -> list[tuple[str, str, str]]:
    """Entries for :attr:`Figure.legend`; ``paper`` adds one for published points."""
    results = list(results)
    labels = {result.key.method: short_name(result) for result in results}
    methods = in_order(labels, METHODS)
    entries = [(labels[name], look.colour(name), look.marker(name)) for name in methods]
    if paper:
        entries.append((f"{published_under(results[0].key.protocol).whose} numbers", INK, "paper"))
    return entries


def panels_abreast(results: Iterable[Result]) -> int:
    """As many panels as the missing type with the most datasets needs, so that each type gets its own row."""
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


def draw_band(axes: Axes, at: Sequence[float], line: Sequence[Result], colour: str, alpha: float) -> None:
    """The 95 % intervals around a line, where there are enough masks."""
    pairs = [(x, result.summary.interval) for x, result in zip(at, line) if result.summary.masks >= BAND_FROM]
    bands = [(x, interval.low, interval.high) for x, interval in pairs if interval is not None]
    if bands:
        x, low, high = zip(*bands)
        axes.fill_between(x, low, high, color=colour, alpha=alpha, linewidth=0)


def scale(axes: Axes, side: str, values: Iterable[float]) -> None:
    """Make an axis logarithmic if its values span a wide range, with ticks at 1, 2, 5, 10, ... in plain numbers."""
    values = list(values)
    if max(values) < LINEAR_UP_TO * min(values):
        return
    getattr(axes, f"set_{side}scale")("log")
    axis = getattr(axes, f"{side}axis")
    # Over more than three decades, ticks at 1, 2 and 5 would overlap.
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if max(values) < 1000 * min(values) else (1,)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())
