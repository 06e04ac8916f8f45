"""Accuracy against missing rate, and its difference from published numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

from pagnn_bench.analysis.figures import common
from pagnn_bench.analysis.figures.canvas import PAPER, Figure, Look, Panel, Tips
from pagnn_bench.analysis.figures.common import describe, grouped, short_name
from pagnn_bench.analysis.paper import METHODS
from pagnn_bench.analysis.tables.captions import SYMBOLS
from pagnn_bench.analysis.tables.layout import signed
from pagnn_bench.analysis.tables.results import Result, in_order

MOST_LINES = 9
LARGEST_DIFFERENCE = 10.0  # end of the colour scale, in percentage points
HIGHER, LOWER = "#2f86d6", "#d9434e"


def accuracy_figures(results: Sequence[Result]) -> list[Figure | None]:
    """Accuracy against missing rate; too many lines for one figure become two.

    The second one shows PaGNN and the methods that the paper does not have.
    """
    methods = {result.key.method for result in results if result.mean is not None}
    own = methods & METHODS.keys()
    if len(methods) <= MOST_LINES or not own:
        return [accuracy_figure(results)]
    others = methods - own | {"pagnn_m", "pagnn_n"}
    return [
        accuracy_figure([result for result in results if result.key.method in own]),
        accuracy_figure([result for result in results if result.key.method in others], "other methods"),
    ]


def accuracy_figure(results: Sequence[Result], who: str = "") -> Figure | None:
    """A panel per dataset and type, with 95 % intervals and published points; ``who`` names a second figure."""
    run = [result for result in results if result.mean is not None]
    if not run:
        return None
    look = common.look_of(run)
    panels = [Panel(partial(_draw_accuracy, group, look)) for group in grouped(run).values()]
    whose = run[0].published.whose
    caption = (
        "Test accuracy against missing rate. Lines: our mean over masks; bands: its 95 % confidence interval where "
        f"there are three masks or more (on two it is wider than the panel); hollow diamonds: {whose} numbers."
    )
    name, heading = (f"accuracy-{who.replace(' ', '-')}", f", {who}") if who else ("accuracy", "")
    has_paper = any(result.paper is not None for result in run)
    columns = common.panels_abreast(run)
    entries = common.legend(run, look, has_paper)
    return Figure(name, f"Accuracy against missing rate{heading}", caption, panels, entries, columns)


def _draw_accuracy(results: Sequence[Result], look: Look, axes: Axes, tips: Tips) -> None:
    for method, group in itertools.groupby(results, key=lambda result: result.key.method):
        line = list(group)
        colour, rates = look.colour(method), [result.key.rate for result in line]
        means = [result.mean or 0.0 for result in line]
        axes.plot(rates, means, color=colour, linewidth=look.width(method), zorder=3)
        common.draw_band(axes, rates, line, colour, alpha=0.15)
        point: Any = {"color": colour, "marker": look.marker(method), "markersize": 4, "linestyle": "none"}
        axes.plot(rates, means, **point, zorder=4, gid=tips.add(*map(describe, line)))
        printed = [result for result in line if result.paper is not None]
        if printed:
            hollow: Any = {**point, "marker": "d", "markersize": 5, "markerfacecolor": PAPER, "zorder": 5}
            texts = (
                f"{r.published.row}, {short_name(r)}, rate {r.key.rate:g}: {r.paper:.2f} %" for r in printed
            )
            values = [result.paper or 0.0 for result in printed]
            axes.plot([result.key.rate for result in printed], values, **hollow, gid=tips.add(*texts))
    # Intervals over few masks can be wider than the panel, so the lines set its limits.
    values = [value for result in results for value in (result.mean, result.paper) if value is not None]
    margin = max(1.0, 0.08 * (max(values) - min(values)))
    axes.set_ylim(max(0, min(values) - margin), min(100, max(values) + margin))
    axes.set_xticks(sorted({result.key.rate for result in results}))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("missing rate")
    axes.set_ylabel("test accuracy (%)")
    axes.set_title(common.title(results[0]))


def difference_figure(results: Sequence[Result]) -> Figure | None:
    """Our numbers minus the published ones as a heat map, a panel per dataset and type."""
    both = [result for result in results if result.difference is not None and result.is_default]
    if not both:
        return None
    rates = sorted({result.key.rate for result in both})
    labels = {result.key.method: short_name(result) for result in both}
    panels = []
    for (missing, _), group in grouped(both).items():
        # The same rows in every panel of a type, so that panels can be compared.
        methods = in_order((result.key.method for result in both if result.key.missing == missing), METHODS)
        rows = {method: labels[method] for method in methods}
        panels.append(Panel(partial(_draw_differences, group, rows, rates)))
    columns = common.panels_abreast(both)
    caption = (
        f"Ours minus {both[0].published.whose} number in percentage points: blue, ours is higher; red, lower. "
        "= inside our 95 % interval, ≈ within tolerance, ≠ differs, ? too few masks."
    )
    heading = f"Difference from {both[0].published.whose} numbers"
    size, left = (3.4, 0.75 + 0.27 * len(labels)), 0.2 + 0.07 * max(map(len, labels.values()))
    return Figure("difference", heading, caption, panels, columns=columns, size=size, left=left)


def _draw_differences(
    results: Sequence[Result], methods: dict[str, str], rates: list[float], axes: Axes, tips: Tips
) -> None:
    places = [([*methods].index(result.key.method), rates.index(result.key.rate)) for result in results]
    colours = np.zeros((len(methods), len(rates), 4))
    for place, result in zip(places, results):
        difference = result.difference or 0.0
        strength = min(1.0, abs(difference) / LARGEST_DIFFERENCE)
        # Transparent shades: on a light page and a dark one, no difference has the colour of the page.
        colours[place] = to_rgba(HIGHER if difference > 0 else LOWER, 0.06 + 0.8 * strength)
        centred: Any = {"ha": "center", "va": "center", "fontsize": 7.5}
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
    axes.set_title(common.title(results[0]))
