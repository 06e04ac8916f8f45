"""What is drawn: each function takes results of a single protocol; None if there is nothing to show."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.ticker import LogLocator, NullLocator

from pagnn_bench.figures.canvas import FAINT, INK, PAPER, Figure, Look, Panel, Tips
from pagnn_bench.paper import METHODS, TABLES
from pagnn_bench.tables.layout import SYMBOLS, signed
from pagnn_bench.tables.results import Result, in_order
from pagnn_bench.tables.timing import REFERENCE, Timing, at, timed_places

CONVERGENCE = ("cora", 0.5)  # what the paper's Figure 3 shows
TIME_RATE = 0.5
LONGEST_LABEL = 20
LARGEST_DIFFERENCE = 10.0  # end of the colour scale, in percentage points
HIGHER, LOWER = "#2f86d6", "#d9434e"


def draw_all(results: Sequence[Result], timings: Sequence[Timing], curves: Sequence[Result]) -> list[Figure]:
    """Every figure that there are results for."""
    drawn = (
        accuracy_figure(results),
        difference_figure(results),
        timing_figure(timings),
        trade_off_figure(results, timings),
        convergence_figure(curves),
    )
    return [figure for figure in drawn if figure is not None]


def _look(results: Iterable[Result | Timing]) -> Look:
    return Look(in_order((result.key.method for result in results), METHODS))


def _grouped(results: Iterable[Result]) -> dict[tuple[str, str], list[Result]]:
    """(missing, data) → results, in the order of the paper."""
    found: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        found.setdefault((result.key.missing, result.key.data), []).append(result)
    return found


def _title(result: Result) -> str:
    return f"{result.labels['data']}, {result.labels['missing']}"


def _name(result: Result | Timing) -> str:
    """The method, short enough for an axis."""
    label = result.labels["method"]
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"


def _legend(
    results: Iterable[Result | Timing], look: Look, paper: bool = False
) -> list[tuple[str, str, str]]:
    labels = {result.key.method: _name(result) for result in results}
    methods = in_order(labels, METHODS)
    entries = [(labels[name], look.colour(name), look.marker(name)) for name in methods]
    return [*entries, ("the paper's numbers", INK, "paper")] if paper else entries


# ---- accuracy


def accuracy_figure(results: Sequence[Result]) -> Figure | None:
    """Accuracy against missing rate, a panel per dataset and type, with 95 % intervals and the paper's points."""
    run = [result for result in results if result.mean is not None]
    if not run:
        return None
    look = _look(run)
    panels = [Panel(partial(_draw_accuracy, group, look)) for group in _grouped(run).values()]
    caption = (
        "Test accuracy against missing rate. Lines: our mean over all trials; bands: its 95 % confidence interval; "
        "hollow diamonds: the paper's numbers."
    )
    has_paper = any(result.paper is not None for result in run)
    columns = max(sum(result.key.missing == kind for result in _firsts(run)) for kind in _kinds(run))
    return Figure(
        "accuracy", "Accuracy against missing rate", caption, panels, _legend(run, look, has_paper), columns
    )


def _kinds(results: Iterable[Result]) -> list[str]:
    return in_order((result.key.missing for result in results), TABLES.values())


def _firsts(results: Sequence[Result]) -> list[Result]:
    return [group[0] for group in _grouped(results).values()]


def _draw_accuracy(results: Sequence[Result], look: Look, axes: Axes, tips: Tips) -> None:
    for method, group in itertools.groupby(results, key=lambda result: result.key.method):
        line = list(group)
        colour, rates = look.colour(method), [result.key.rate for result in line]
        means = [result.mean or 0.0 for result in line]
        axes.plot(rates, means, color=colour, linewidth=look.width(method), zorder=3)
        banded = [(result.key.rate, result.summary.interval) for result in line if result.summary.interval]
        if banded:
            low, high = ([getattr(interval, end) for _, interval in banded] for end in ("low", "high"))
            axes.fill_between([rate for rate, _ in banded], low, high, color=colour, alpha=0.15, linewidth=0)
        point = {"color": colour, "marker": look.marker(method), "markersize": 4, "linestyle": "none"}
        axes.plot(rates, means, **point, zorder=4, gid=tips.add(*map(describe, line)))
        printed = [result for result in line if result.paper is not None]
        if printed:
            hollow = {**point, "marker": "d", "markersize": 5, "markerfacecolor": PAPER, "zorder": 5}
            texts = (f"the paper, {_name(r)}, rate {r.key.rate:g}: {r.paper:.2f} %" for r in printed)
            values = [result.paper for result in printed]
            axes.plot([result.key.rate for result in printed], values, **hollow, gid=tips.add(*texts))
    # Intervals over two masks can be wider than the panel: the lines matter, so these set the limits.
    shown = [value for result in results for value in (result.mean, result.paper) if value is not None]
    margin = max(1.0, 0.08 * (max(shown) - min(shown)))
    axes.set_ylim(max(0, min(shown) - margin), min(100, max(shown) + margin))
    axes.set_xticks(sorted({result.key.rate for result in results}))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("missing rate")
    axes.set_ylabel("test accuracy (%)")
    axes.set_title(_title(results[0]))


def describe(result: Result) -> str:
    """The hover text of a point."""
    summary, interval = result.summary, result.summary.interval
    text = f"{_name(result)}, rate {result.key.rate:g}: {result.mean:.2f} %"
    if interval is not None:
        text += f", 95 % interval {interval.low:.2f} to {interval.high:.2f}"
        text += " (seeds only)" if interval.over == "seeds" else ""
    text += f", n = {summary.trials}"
    return (
        f"{text}; paper {result.paper:.2f} ({result.difference:+.2f})" if result.paper is not None else text
    )


# ---- difference to the paper


def difference_figure(results: Sequence[Result]) -> Figure | None:
    """Ours minus the paper's as a heat map, a panel per dataset and type."""
    both = [result for result in results if result.difference is not None and result.is_default]
    if not both:
        return None
    rates = sorted({result.key.rate for result in both})
    labels = {result.key.method: _name(result) for result in both}
    panels = []
    for (missing, _), group in _grouped(both).items():
        # The same rows in every panel of a type, so that they can be compared across.
        methods = in_order((result.key.method for result in both if result.key.missing == missing), METHODS)
        rows = {method: labels[method] for method in methods}
        panels.append(Panel(partial(_draw_differences, group, rows, rates)))
    columns = max(sum(result.key.missing == kind for result in _firsts(both)) for kind in _kinds(both))
    caption = (
        "Ours minus the paper's number in percentage points: blue, ours is higher; red, lower. "
        "= inside our 95 % interval, ≈ within tolerance, ≠ differs."
    )
    size, left = (3.4, 0.75 + 0.27 * len(labels)), 0.15 + 0.065 * max(map(len, labels.values()))
    return Figure(
        "difference", "Difference to the paper", caption, panels, columns=columns, size=size, left=left
    )


def _draw_differences(
    results: Sequence[Result], methods: dict[str, str], rates: list[float], axes: Axes, tips: Tips
) -> None:
    places = [([*methods].index(result.key.method), rates.index(result.key.rate)) for result in results]
    colours = np.zeros((len(methods), len(rates), 4))
    for place, result in zip(places, results):
        difference = result.difference or 0.0
        strength = min(1.0, abs(difference) / LARGEST_DIFFERENCE)
        # Shades of transparency, so that no difference is the colour of the page, be it light or dark.
        colours[place] = to_rgba(HIGHER if difference > 0 else LOWER, 0.06 + 0.8 * strength)
        centred = {"ha": "center", "va": "center", "fontsize": 7.5}
        text = f"{signed(difference, 1)} {SYMBOLS[result.verdict or '']}"
        axes.text(place[1] + 0.5, place[0] + 0.5, text, **centred, gid=tips.add(describe(result)))
    axes.grid(False)
    axes.pcolormesh(colours, edgecolors=PAPER, linewidth=1.5)
    axes.set_xticks(np.arange(len(rates)) + 0.5, [f"{rate:g}" for rate in rates])
    axes.set_yticks(np.arange(len(methods)) + 0.5, list(methods.values()))
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("missing rate")
    axes.set_title(_title(results[0]))


# ---- time


def timing_figure(timings: Sequence[Timing]) -> Figure | None:
    """Milliseconds per epoch, absolute and as ratio to MF."""
    if not timings:
        return None
    look = _look(timings)
    panels = [Panel(partial(_draw_times, timings, look, False))]
    if any(timing.key.method == REFERENCE for timing in timings):
        panels.append(Panel(partial(_draw_times, timings, look, True)))
    caption = (
        "Time of one training epoch, evaluation excluded: median over repeats, bars from the first to the third "
        "quartile. Two-stage methods: (filling in + training) / epochs of training."
    )
    legend = [(text, colour, "") for text, colour, _ in _legend(timings, look)]
    return Figure("timing", "Time per epoch", caption, panels, legend, columns=2, size=(5.2, 3.0))


def _draw_times(timings: Sequence[Timing], look: Look, ratio: bool, axes: Axes, tips: Tips) -> None:
    methods = in_order((timing.key.method for timing in timings), METHODS)
    places = timed_places(timings)
    width = 0.8 / len(methods)
    for number, place in enumerate(places):
        here = at(timings, place)
        unit = here[REFERENCE].median if ratio and REFERENCE in here else 1.0
        if ratio and REFERENCE not in here:
            continue
        for offset, method in enumerate(methods):
            if method not in here:
                continue
            timing = here[method]
            low, high = timing.quartiles
            spread = [[(timing.median - low) / unit], [(high - timing.median) / unit]]
            text = f"{timing.labels['method']}, {timing.labels['data']}: {timing.median:.3g} ms per epoch"
            text += (
                f" ({low:.3g} to {high:.3g}, {len(timing.repeats)} repeats)"
                if len(timing.repeats) > 1
                else ""
            )
            text += f", {timing.median / here[REFERENCE].median:.2f} times MF" if REFERENCE in here else ""
            text += f"; filling in is {100 * timing.fill_share:.0f} % of it" if timing.two_stage else ""
            x = number + (offset - (len(methods) - 1) / 2) * width
            bar = axes.bar([x], [timing.median / unit], 0.92 * width, color=look.colour(method))
            bar[0].set_gid(tips.add(text))
            axes.errorbar([x], [timing.median / unit], yerr=spread, color=INK, linewidth=0.8, capsize=1.5)
    names = {timing.key.data: timing.labels["data"] for timing in timings}
    one_kind = len({place[1:] for place in places}) == 1
    heads = [
        names[data] if one_kind else f"{names[data]}\n{missing} {rate:g}" for data, missing, rate in places
    ]
    _plain_log(axes, "y")
    axes.set_xticks(range(len(places)), heads)
    axes.grid(False, axis="x")
    if ratio:
        axes.axhline(1, color=INK, linewidth=0.8, linestyle=":")
    axes.set_title("relative to MF" if ratio else "absolute")
    axes.set_ylabel("times MF" if ratio else "ms per epoch")


def _plain_log(axes: Axes, side: str) -> None:
    """A logarithmic axis with 1, 2, 5, 10, ... in plain numbers."""
    getattr(axes, f"set_{side}scale")("log")
    axis = getattr(axes, f"{side}axis")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())


def trade_off_figure(results: Sequence[Result], timings: Sequence[Timing]) -> Figure | None:
    """Time per epoch against accuracy at one rate, a panel per dataset and type."""
    timed: dict[tuple[str, str], float] = {}
    for timing in timings:
        timed.setdefault((timing.key.method, timing.key.data), timing.median)
    alone = bool(timed)
    chosen = [result for result in results if result.mean is not None and result.key.rate == TIME_RATE]
    points = []
    for result in chosen:
        time = timed.get((result.key.method, result.key.data)) if alone else result.summary.epoch_ms
        if time:
            points.append((result, time))
    if len(points) < 2:
        return None
    look = _look(result for result, _ in points)
    groups = _grouped(result for result, _ in points)
    times = {result.key: time for result, time in points}
    panels = [Panel(partial(_draw_trade_off, group, times, look)) for group in groups.values()]
    how = (
        "measured one network at a time, as in the figure of times"
        if alone
        else "as the tables were run, with many seeds trained at once and without the time of filling in"
    )
    caption = (
        f"Test accuracy at missing rate {TIME_RATE:g} against time per epoch, {how}. Up and left is better."
    )
    legend = _legend((result for result, _ in points), look)
    columns = max(sum(kind == missing for missing, _ in groups) for kind, _ in groups)
    return Figure("trade-off", "Time against accuracy", caption, panels, legend, columns)


def _draw_trade_off(
    results: Sequence[Result], times: dict[object, float], look: Look, axes: Axes, tips: Tips
) -> None:
    for result in results:
        method, time = result.key.method, times[result.key]
        interval, mean = result.summary.interval, result.mean or 0.0
        if interval is not None:
            axes.vlines(
                time, interval.low, interval.high, color=look.colour(method), linewidth=0.8, alpha=0.6
            )
        text = f"{describe(result)}; {time:.3g} ms per epoch"
        point = {
            "color": look.colour(method),
            "marker": look.marker(method),
            "markersize": 6,
            "linestyle": "none",
        }
        axes.plot([time], [mean], **point, gid=tips.add(text))
    means = [result.mean or 0.0 for result in results]
    margin = max(1.0, 0.15 * (max(means) - min(means)))
    axes.set_ylim(min(means) - margin, max(means) + margin)
    _plain_log(axes, "x")
    axes.set_xlabel("ms per epoch")
    axes.set_ylabel("test accuracy (%)")
    axes.set_title(_title(results[0]))


# ---- convergence


def convergence_figure(results: Sequence[Result]) -> Figure | None:
    """Training loss against epoch, a panel per missing type: the paper's Figure 3."""
    having = [result for result in results if _curves(result)]
    if not having:
        return None
    wanted = [result for result in having if (result.key.data, result.key.rate) == CONVERGENCE]
    first = (wanted or having)[0]
    shown = [
        result for result in having if (result.key.data, result.key.rate) == (first.key.data, first.key.rate)
    ]
    look = _look(shown)
    panels = [Panel(partial(_draw_curves, group, look)) for group in _grouped(shown).values()]
    caption = (
        f"Training loss on {first.labels['data']} with {100 * first.key.rate:.0f} % missing, dropout on: thin, every "
        "trial; thick, the mean over the trials still in training, as long as half of them are."
    )
    return Figure("convergence", "Convergence", caption, panels, _legend(shown, look), columns=2)


def _curves(result: Result) -> list[list[float]]:
    curves = [trial.record.get("curve") for trial in result.trials if trial.ok]
    return [[np.nan if value is None else value for value in curve] for curve in curves if curve]


def _draw_curves(results: Sequence[Result], look: Look, axes: Axes, tips: Tips) -> None:
    for result in results:
        curves, colour = _curves(result), look.colour(result.key.method)
        for curve in curves[:10]:
            axes.plot(range(1, len(curve) + 1), curve, color=colour, linewidth=0.4, alpha=0.3, zorder=2)
        length = int(statistics.median_high(len(curve) for curve in curves))
        mean = [
            float(np.nanmean([curve[epoch] for curve in curves if len(curve) > epoch]))
            for epoch in range(length)
        ]
        axes.plot(range(1, length + 1), mean, color=colour, linewidth=1.6, zorder=3)
        epochs = np.unique(np.linspace(1, length, 9).astype(int))
        texts = (
            f"{_name(result)}, epoch {epoch}: mean training loss {mean[epoch - 1]:.3f}" for epoch in epochs
        )
        marks = {"marker": "o", "linestyle": "none", "color": colour, "markersize": 3, "zorder": 4}
        axes.plot(epochs, [mean[epoch - 1] for epoch in epochs], **marks, gid=tips.add(*texts))
    axes.set_xlabel("epoch")
    axes.set_ylabel("training loss")
    axes.set_ylim(bottom=0)
    axes.set_title(_title(results[0]))
    axes.axhline(0, color=FAINT, linewidth=0.6)
