"""Training loss against epoch: the paper's figure of convergence."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from pagnn_bench.analysis.figures.canvas import FAINT, Figure, Look, Panel, Tips
from pagnn_bench.analysis.figures.common import grouped, legend, look_of, short_name, title
from pagnn_bench.analysis.tables.results import Result

IN_THE_PAPER = ("cora", 0.5)  # data and missing rate of the paper's figure


def convergence_figure(results: Sequence[Result]) -> Figure | None:
    """Training loss against epoch, a panel per missing type: the paper's Figure 3."""
    places: dict[tuple[str, float], list[Result]] = {}
    for result in results:
        if _curves(result):
            places.setdefault((result.key.data, result.key.rate), []).append(result)
    if not places:
        return None
    drawn = places.get(IN_THE_PAPER) or next(iter(places.values()))
    data, rate = drawn[0].labels["data"], drawn[0].key.rate
    look = look_of(drawn)
    panels = [Panel(partial(_draw_curves, group, look)) for group in grouped(drawn).values()]
    caption = (
        f"Training loss on {data} with {100 * rate:.0f} % missing, dropout on: thin, every trial; thick, the mean over "
        "the trials still in training, as long as half of them are."
    )
    return Figure("convergence", "Convergence", caption, panels, legend(drawn, look), columns=2)


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
            f"{short_name(result)}, epoch {epoch}: mean training loss {mean[epoch - 1]:.3f}"
            for epoch in epochs
        )
        marks: Any = {"marker": "o", "linestyle": "none", "color": colour, "markersize": 3, "zorder": 4}
        axes.plot(epochs, [mean[epoch - 1] for epoch in epochs], **marks, gid=tips.add(*texts))
    axes.set_xlabel("epoch")
    axes.set_ylabel("training loss")
    axes.set_ylim(bottom=0)
    axes.set_title(title(results[0]))
    axes.axhline(0, color=FAINT, linewidth=0.6)
