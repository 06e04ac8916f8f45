"""Time per epoch, and what accuracy it buys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from matplotlib.axes import Axes

from pagnn_bench.analysis.figures import common
from pagnn_bench.analysis.figures.canvas import INK, Figure, Look, Panel, Tips
from pagnn_bench.analysis.figures.common import describe, grouped, look_of, short_name
from pagnn_bench.analysis.tables.layout import three_digits
from pagnn_bench.analysis.tables.results import Key, Result
from pagnn_bench.analysis.tables.timing import REFERENCE, Timing, Timings

TIME_RATE = 0.5  # the missing rate of the trade-off


def timing_figure(timings: Timings) -> Figure | None:
    """Milliseconds per epoch, absolute and relative to MF."""
    if not timings.all:
        return None
    look = look_of(timings.all)
    panels = [Panel(partial(_draw_times, timings, look, False))]
    if REFERENCE in timings.methods:
        panels.append(Panel(partial(_draw_times, timings, look, True)))
    caption = (
        "Time of one training epoch, evaluation excluded: median over repeats, bars from the first to the third "
        "quartile. What a method does once per mask (filling in, fitting, aggregating) is part of the time."
    )
    swatches = [(text, colour, "") for text, colour, _ in common.legend(timings.all, look)]
    return Figure("timing", "Time per epoch", caption, panels, swatches, columns=2, size=(4.0, 2.7))


def _draw_times(timings: Timings, look: Look, ratio: bool, axes: Axes, tips: Tips) -> None:
    methods, headings = timings.methods, timings.headings
    width, heights = min(0.8 / len(methods), 0.2), []
    for number, place in enumerate(timings.places):
        here = timings.at(place)
        if ratio and REFERENCE not in here:
            continue
        unit = here[REFERENCE].median if ratio else 1.0
        for offset, method in enumerate(methods):
            if method not in here:
                continue
            timing = here[method]
            low, high = timing.quartiles
            spread = [[(timing.median - low) / unit], [(high - timing.median) / unit]]
            text = _describe(timing, here.get(REFERENCE))
            heights.append(timing.median / unit)
            x = number + (offset - (len(methods) - 1) / 2) * width
            bar = axes.bar([x], [timing.median / unit], 0.92 * width, color=look.colour(method))
            bar[0].set_gid(tips.add(text))
            axes.errorbar([x], [timing.median / unit], yerr=spread, color=INK, linewidth=0.8, capsize=1.5)
    common.scale(axes, "y", heights)
    axes.set_xticks(range(len(headings)), ["\n".join(filter(None, heading)) for heading in headings])
    axes.set_xlim(-0.6, len(headings) - 0.4)
    axes.grid(False, axis="x")
    if ratio:
        axes.axhline(1, color=INK, linewidth=0.8, linestyle=":")
    axes.set_title("relative to MF" if ratio else "absolute")
    axes.set_ylabel("times MF" if ratio else "ms per epoch")


def _describe(timing: Timing, reference: Timing | None) -> str:
    """The hover text of a bar."""
    low, high = map(three_digits, timing.quartiles)
    text = f"{short_name(timing)}, {timing.labels['data']}: {three_digits(timing.median)} ms per epoch"
    text += f" ({low} to {high}, {len(timing.repeats)} repeats)" if len(timing.repeats) > 1 else ""
    text += f", {timing.median / reference.median:.2f} times MF" if reference else ""
    return f"{text}; preparation is {100 * timing.prepare_share:.0f} % of it"


def trade_off_figure(results: Sequence[Result], timings: Timings) -> Figure | None:
    """Time per epoch against accuracy at one rate, a panel per dataset and type."""
    timed: dict[tuple[str, str], float] = {}
    for timing in timings.all:
        timed.setdefault((timing.key.method, timing.key.data), timing.median)
    alone = bool(timed)
    times: dict[Key, float] = {}
    for result in results:
        if result.mean is not None and result.key.rate == TIME_RATE:
            time = timed.get((result.key.method, result.key.data)) if alone else result.summary.epoch_ms
            if time:
                times[result.key] = time
    if len(times) < 2:
        return None
    points = [result for result in results if result.key in times]
    look, groups = look_of(points), grouped(points)
    panels = [Panel(partial(_draw_trade_off, group, times, look)) for group in groups.values()]
    how = (
        "measured one network at a time, as in the figure of times"
        if alone
        else "as the tables were run: many seeds trained at once, preparation not counted"
    )
    caption = (
        f"Test accuracy at missing rate {TIME_RATE:g} against time per epoch, {how}. Up and left is better."
    )
    entries, columns = common.legend(points, look), common.panels_abreast(points)
    return Figure("trade-off", "Time against accuracy", caption, panels, entries, columns)


def _draw_trade_off(
    results: Sequence[Result], times: Mapping[Key, float], look: Look, axes: Axes, tips: Tips
) -> None:
    for result in results:
        method, time = result.key.method, times[result.key]
        interval, mean = result.summary.interval, result.mean or 0.0
        if interval is not None and interval.over == "masks":
            axes.vlines(
                time, interval.low, interval.high, color=look.colour(method), linewidth=0.8, alpha=0.6
            )
        text = f"{describe(result)}; {three_digits(time)} ms per epoch"
        point: Any = {
            "color": look.colour(method),
            "marker": look.marker(method),
            "markersize": 6,
            "linestyle": "none",
        }
        axes.plot([time], [mean], **point, gid=tips.add(text))
    means = [result.mean or 0.0 for result in results]
    margin = max(1.0, 0.15 * (max(means) - min(means)))
    axes.set_ylim(min(means) - margin, max(means) + margin)
    common.scale(axes, "x", (times[result.key] for result in results))
    axes.set_xlabel("ms per epoch")
    axes.set_ylabel("test accuracy (%)")
    axes.set_title(common.title(results[0]))
