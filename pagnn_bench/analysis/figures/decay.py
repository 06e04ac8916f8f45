"""Accuracy against weight decay, and where each protocol is on it: what one setting for all methods does to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from matplotlib.axes import Axes

from pagnn_bench.analysis.figures import common
from pagnn_bench.analysis.figures.canvas import INK, PAPER, Figure, Look, Panel, Tips
from pagnn_bench.analysis.figures.common import describe, grouped
from pagnn_bench.analysis.paper import METHODS
from pagnn_bench.analysis.tables.leads import CITATION, PROTOCOLS
from pagnn_bench.analysis.tables.results import Result, Results, common_masks, in_order

SWEEP = "weight_decay"  # the protocol's name in experiment=weight_decay
RATE = 0.9
MARKERS = {"paper": "*", "tuned": "o", "shared": "s"}
NO_DECAY = 3e-7  # where a weight decay of 0 is drawn on a logarithmic axis


def decay_figure(results: Results) -> Figure | None:
    """A panel per dataset and type at the highest rate; None without a sweep over weight decay."""
    swept = _on_common_masks([result for result in results.all if _is_swept(result)])
    if not swept:
        return None
    methods = {result.key.method for result in swept}
    marks = [
        result
        for protocol in PROTOCOLS
        for result in results.under(protocol)
        if result.mean is not None and result.key.rate == RATE and result.key.method in methods
    ]
    look = common.look_of(swept)
    places = grouped(swept)
    panels = [
        Panel(partial(_draw, lines, [mark for mark in marks if _place(mark) == place], look))
        for place, lines in places.items()
    ]
    caption = (
        f"Test accuracy at missing rate {RATE:g} against weight decay, all else as under protocol=shared; bands are "
        "95 % intervals over masks. Marks: the protocols; hollow diamonds on the right: the paper's numbers, whose "
        "weight decay is not stated."
    )
    entries = [
        (text, colour, marker if marker == "paper" else "_")
        for text, colour, marker in common.legend(swept, look, True)
    ]
    entries += [(name, INK, MARKERS[protocol]) for protocol, name in PROTOCOLS.items()]
    return Figure(
        "weight-decay",
        "Accuracy against weight decay",
        caption,
        panels,
        entries,
        common.panels_abreast(swept),
        size=(4.2, 3.1),
    )


def _is_swept(result: Result) -> bool:
    cell = result.cell
    return (
        cell is not None
        and cell.protocol["name"] == SWEEP
        and result.mean is not None
        and result.is_default
        and result.key.rate == RATE
        and result.key.data in CITATION
    )


def _on_common_masks(swept: Sequence[Result]) -> list[Result]:
    """The points of each line, restricted to the masks that all of them have: others would bend the line by chance."""
    lines: dict[tuple[str, str, str], list[Result]] = {}
    for result in swept:
        lines.setdefault((*_place(result), result.key.method), []).append(result)
    masks = {line: common_masks(points) for line, points in lines.items()}
    return [
        replace(result, trials=tuple(trial for trial in result.trials if trial.mask in masks[line]))
        for line, points in lines.items()
        for result in points
        if masks[line]
    ]


def _place(result: Result) -> tuple[str, str]:
    return result.key.missing, result.key.data


def _decay(result: Result) -> float:
    assert result.cell is not None
    return max(float(result.cell.protocol["weight_decay"]), NO_DECAY)


def _draw(swept: Sequence[Result], marks: Sequence[Result], look: Look, axes: Axes, tips: Tips) -> None:
    right = 3 * max(map(_decay, swept))
    for method in in_order((result.key.method for result in swept), METHODS):
        line = sorted((result for result in swept if result.key.method == method), key=_decay)
        colour, at = look.colour(method), list(map(_decay, line))
        means = [result.mean or 0.0 for result in line]
        axes.plot(at, means, color=colour, linewidth=look.width(method), zorder=3)
        point: Any = {"color": colour, "linestyle": "none", "zorder": 4}
        axes.plot(at, means, marker=".", markersize=3, **point, gid=tips.add(*map(describe, line)))
        common.draw_band(axes, at, line, colour, alpha=0.12)
        for mark in (mark for mark in marks if mark.key.method == method):
            text = f"{PROTOCOLS[mark.key.protocol]}: {describe(mark)}"
            shape = MARKERS[mark.key.protocol]
            size = 10 if shape == "*" else 6
            edge: Any = {"markersize": size, "markeredgecolor": PAPER, "markeredgewidth": 0.8}
            axes.plot(
                [_decay(mark)], [mark.mean or 0.0], marker=shape, **{**point, **edge}, gid=tips.add(text)
            )
        if line[0].paper is not None:
            hollow: Any = {"marker": "d", "markersize": 5, "markerfacecolor": PAPER}
            text = f"the paper, {line[0].labels['method']}: {line[0].paper:.2f} %"
            axes.plot([right], [line[0].paper], **{**point, **hollow}, gid=tips.add(text))
    axes.set_xscale("log")
    axes.set_xlabel("weight decay")
    axes.set_ylabel("test accuracy (%)")
    axes.set_title(f"{common.title(swept[0])}, rate {RATE:g}")
