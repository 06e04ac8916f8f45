"""Figures from recorded results. Needs matplotlib, neither torch nor Hydra.

    canvas.py        a figure as panels: as files, and as SVG for a page, with hover values and the page's colours
    common.py        names, colours, the order of panels, bands and scales
    accuracy.py      accuracy against missing rate; difference from the paper
    time.py          time per epoch; time against accuracy
    decay.py         accuracy against weight decay, and where each protocol stands
    convergence.py   training loss
    ranking.py       a comparison on one graph

Every function takes results of a single protocol (decay.py: of all protocols) and returns None if there is nothing to
show.
"""

from __future__ import annotations

from collections.abc import Sequence

from pagnn_bench.analysis.figures.accuracy import accuracy_figures, difference_figure
from pagnn_bench.analysis.figures.canvas import Figure
from pagnn_bench.analysis.figures.convergence import convergence_figure
from pagnn_bench.analysis.figures.decay import decay_figure
from pagnn_bench.analysis.figures.time import timing_figure, trade_off_figure
from pagnn_bench.analysis.tables.results import Result, Results
from pagnn_bench.analysis.tables.timing import Timings


def draw_all(
    everything: Results, results: Sequence[Result], timings: Timings, curves: Sequence[Result]
) -> list[Figure]:
    """Every figure that has something to show.

    Args:
        everything: of all protocols.
        results: of the protocol that the tables show.
        timings: of trials that were timed alone.
        curves: results whose trials may hold training curves.
    """
    drawn = (
        decay_figure(everything),
        *accuracy_figures(results),
        difference_figure(results),
        timing_figure(timings),
        trade_off_figure(results, timings),
        convergence_figure(curves),
    )
    return [figure for figure in drawn if figure is not None]
