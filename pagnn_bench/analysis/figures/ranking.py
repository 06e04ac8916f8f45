"""A comparison on one graph: accuracy with its interval, and its cost in time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from matplotlib.axes import Axes

from pagnn_bench.analysis.figures.canvas import INK, LETTER_INCHES, PAPER, Figure, Look, Panel, Tips
from pagnn_bench.analysis.figures.common import scale, shortened
from pagnn_bench.analysis.ranking import Place, Ranking
from pagnn_bench.analysis.tables.layout import three_digits

ROW_INCHES, FRAME_INCHES = 0.21, 0.8  # height of a method's line; of heading and axis


def ranking_figures(ranking: Ranking) -> list[Figure]:
    """Accuracy of every ranked method, and accuracy against time; nothing for fewer than two."""
    places = ranking.ranked
    if len(places) < 2:
        return []
    look = Look([place.contender.name for place in places])
    left = 0.3 + LETTER_INCHES * max(len(_short(place)) for place in places)
    lines = Figure(
        "accuracy",
        "Accuracy",
        "Test accuracy: mean and 95 % interval. Filled: not told apart from the best.",
        [Panel(partial(_draw_lines, places, look))],
        columns=1,
        size=(5.2, FRAME_INCHES + ROW_INCHES * len(places)),
        left=left,
    )
    timed = [place for place in places if place.contender.seconds]
    if len(timed) < 2:
        return [lines]
    costs = Figure(
        "cost",
        "Accuracy and time",
        "Test accuracy against seconds per trial, including preparation once per mask. Up and left is better.",
        [Panel(partial(_draw_costs, timed, look))],
        [
            (_short(place), look.colour(place.contender.name), look.marker(place.contender.name))
            for place in timed
        ],
        columns=1,
        size=(5.2, 3.4),
    )
    return [lines, costs]


def _short(place: Place) -> str:
    return shortened(place.contender.label)


def _describe(place: Place) -> str:
    """The hover text of a point."""
    text = f"{place.contender.label}: {place.mean:.2f} %"
    if place.interval is not None:
        text += f", 95 % interval {place.interval.low:.2f} to {place.interval.high:.2f}"
    if place.contender.seconds is not None:
        text += f", {three_digits(place.contender.seconds)} s per trial"
    return text


def _draw_lines(places: Sequence[Place], look: Look, axes: Axes, tips: Tips) -> None:
    for row, place in enumerate(places):
        colour = look.colour(place.contender.name)
        if place.interval is not None:
            axes.hlines(row, place.interval.low, place.interval.high, color=colour, linewidth=1.4)
        axes.plot(
            [place.mean or 0.0],
            [row],
            color=colour,
            marker="o",
            markersize=6,
            markerfacecolor=PAPER if place.apart else colour,
            linestyle="none",
            gid=tips.add(_describe(place)),
        )
    axes.axvline(places[0].mean or 0.0, color=INK, linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(places)), [_short(place) for place in places])
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.set_xlabel("test accuracy (%)")


def _draw_costs(places: Sequence[Place], look: Look, axes: Axes, tips: Tips) -> None:
    for place in places:
        seconds, colour = place.contender.seconds or 0.0, look.colour(place.contender.name)
        if place.interval is not None:
            axes.vlines(
                seconds, place.interval.low, place.interval.high, color=colour, linewidth=0.8, alpha=0.6
            )
        axes.plot(
            [seconds],
            [place.mean or 0.0],
            color=colour,
            marker=look.marker(place.contender.name),
            markersize=6,
            linestyle="none",
            gid=tips.add(_describe(place)),
        )
    scale(axes, "x", (place.contender.seconds or 0.0 for place in places))
    axes.set_xlabel("seconds per trial")
    axes.set_ylabel("test accuracy (%)")
