"""Figures of a document: throughput against stacked seeds, and cost against size. Needs matplotlib, no torch."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator

from pagnn_bench.analysis.figures.canvas import FORMATS, INK, Figure, Look, Panel, Tips, save_figure
from pagnn_bench.analysis.paper import METHODS
from pagnn_bench.analysis.tables.results import in_order
from pagnn_bench.bench.document import Document
from pagnn_bench.bench.growth import by_axis, epoch_ms, extra_mb, slope
from pagnn_bench.bench.speed import OURS, PLAIN, Row, place_of, ratio, reference_of, rows_of
from pagnn_bench.config.errors import RequestError

LEFT = 0.7  # inches for labels of up to five digits


def check_figure(path: str) -> None:
    """Refuse a file of an unknown format."""
    if Path(path).suffix.lstrip(".") not in FORMATS:
        endings = ", ".join(f".{kind}" for kind in FORMATS)
        raise RequestError(f"--figure {path}: the name ends in one of {endings}.")


def write_figure(document: Document, path: str) -> None:
    """Draw the document into a file; its ending is the format."""
    check_figure(path)
    figure = make_figure(document)
    if figure is None:
        raise RequestError(f"--figure {path}: there is nothing to draw in this document.")
    with tempfile.TemporaryDirectory() as folder:
        drawn = {file.suffix: file for file in save_figure(figure, Path(folder))}
        try:
            shutil.copyfile(drawn[Path(path).suffix], path)
        except OSError as error:
            raise RequestError(f"--figure {path}: cannot be written ({error.strerror}).") from error


def make_figure(document: Document) -> Figure | None:
    """The figure of a document; None for a kind without a figure, or an empty document."""
    if document["kind"] == "speed":
        return scaling_figure(document)
    return growth_figure(document) if document["kind"] == "growth" else None


def scaling_figure(document: Document) -> Figure | None:
    """Throughput against the number of stacked seeds, a panel per place; dotted, the plain loop."""
    rows = rows_of(document)
    own = [row for row in rows if row.side == OURS]
    if not own:
        return None
    labels = {place["data"]: place["label"] for place in document["places"]}
    methods = in_order((row.method for row in own), METHODS)
    names, look = {row.method: row.label for row in own}, Look(methods)
    panels = [
        Panel(partial(_draw_scaling, [row for row in rows if place_of(row) == place], labels, look))
        for place in dict.fromkeys(map(place_of, own))
    ]
    legend = [(names[method], look.colour(method), look.marker(method)) for method in methods]
    caption = (
        "Epochs of one seed per second, against the number of seeds trained at once; dotted, the plain loop."
    )
    return Figure("scaling", "Throughput", caption, panels, legend, columns=3, left=LEFT)


def _draw_scaling(rows: Sequence[Row], labels: dict[str, str], look: Look, axes: Axes, tips: Tips) -> None:
    own = [row for row in rows if row.side == OURS]
    for method in dict.fromkeys(row.method for row in own):
        line = sorted((row for row in own if row.method == method), key=lambda row: row.seeds)
        reference, colour = reference_of(line[0], rows, PLAIN), look.colour(method)
        axes.plot(
            [row.seeds for row in line],
            [row.throughput for row in line],
            color=colour,
            marker=look.marker(method),
            markersize=4,
            linewidth=look.width(method),
            gid=tips.add(*(_tip(row, reference) for row in line)),
        )
        if reference is not None:
            axes.axhline(reference.throughput, color=colour, linewidth=0.8, linestyle=":")
    _log_log(axes, [row.seeds for row in own])
    data, missing, rate = place_of(rows[0])
    axes.set_title(f"{labels.get(data, data)}, {missing}, rate {rate:g}")
    axes.set_xlabel("seeds trained at once")
    axes.set_ylabel("seed-epochs per second")


def _tip(row: Row, reference: Row | None) -> str:
    text = f"{row.label}, {row.seeds} at once: {row.throughput:.3g} seed-epochs per second"
    return text if reference is None else f"{text}, {ratio(row, reference):.3g} times the plain loop"


def growth_figure(document: Document) -> Figure | None:
    """Time per epoch (above) and memory beyond imports and data (below) against each size; dotted, linear growth."""
    axes = by_axis(document)
    if not axes:
        return None
    costs: dict[str, Callable[[dict[str, Any]], float]] = {
        "ms per epoch": epoch_ms,
        "extra memory, MB": extra_mb,
    }
    panels = [
        Panel(partial(_draw_growth, name, points, text, cost))
        for text, cost in costs.items()
        for name, points in axes.items()
    ]
    caption = (
        "Time of one epoch and memory beyond imports and data, on synthetic graphs; dotted, linear growth."
    )
    return Figure("growth", "Growth", caption, panels, columns=len(axes), left=LEFT)


def _draw_growth(
    name: str,
    points: Sequence[dict[str, Any]],
    text: str,
    cost: Callable[[dict[str, Any]], float],
    axes: Axes,
    tips: Tips,
) -> None:
    values = [point["value"] for point in points]
    costs = [max(cost(point), 1e-3) for point in points]  # a logarithm must exist
    texts = (f"{value:,} {name}: {number:.3g} ({text})" for value, number in zip(values, costs))
    colour = Look([]).colour("pagnn_n")
    axes.plot(values, costs, color=colour, marker="o", markersize=4, linewidth=1.6, gid=tips.add(*texts))
    # Linear growth through the largest point: where costs lie above it, a fixed part adds to them.
    linear = [costs[-1] * value / values[-1] for value in values]
    axes.plot(values, linear, color=INK, linewidth=0.8, linestyle=":")
    _log_log(axes, values)
    steepness = slope(values, costs)
    axes.set_title(name if steepness is None else f"{name}: slope {steepness:.2f}")
    axes.set_xlabel(name)
    axes.set_ylabel(text)


def _log_log(axes: Axes, values: Sequence[float]) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(sorted(set(values)), [_short(value) for value in sorted(set(values))])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(numticks=8))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())


def _short(value: float) -> str:
    """``200000`` as ``200k``: neighbours on an axis must not touch."""
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
