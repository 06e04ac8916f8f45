"""Who is better than whom: paired comparisons and average ranks, as tables."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from pagnn_bench.analysis.stats import average_ranks, compare, critical_difference, friedman
from pagnn_bench.analysis.tables.captions import CEILING
from pagnn_bench.analysis.tables.layout import Table, TablePart, Value
from pagnn_bench.analysis.tables.results import (
    Place,
    Result,
    by_method,
    common_masks,
    mean_over,
    paired_differences,
)

FEWEST_METHODS, FEWEST_CELLS = 3, 2
SHARE_TO_RANK = 0.75  # a method with fewer cells than this share of the most any method has is not ranked


def statistics_tables(results: Sequence[Result], missing: str) -> list[Table]:
    """The comparisons and the ranks on one missing type; ``results`` are of one protocol."""
    here = [result for result in results if result.key.missing == missing and result.mean is not None]
    methods = {name: cells for name, cells in by_method(here).items() if name.partition("[")[0] != CEILING}
    labels = {result.key.method: result.labels["method"] for result in here}
    label = here[0].labels["missing"] if here else missing
    tables = (
        _comparisons(methods, labels, missing, label),
        _ranks(methods, labels, missing, label),
    )
    return [table for table in tables if table is not None]


def _comparisons(
    methods: dict[str, dict[Place, Result]], labels: dict[str, str], missing: str, label: str
) -> Table | None:
    """Row against column: mean difference, and cells won, tied and lost."""
    entries: dict[tuple[str, str], Value] = {}
    for first, second in itertools.permutations(methods, 2):
        ours, theirs = methods[first], methods[second]
        shared = [place for place in ours if place in theirs]
        comparison = compare([paired_differences(ours[place], theirs[place]) for place in shared])
        if comparison.average is not None:
            mean = comparison.average.interval.mean
            tally = f"{comparison.wins}/{comparison.ties}/{comparison.losses}"
            ahead = mean > 0 and comparison.wins > comparison.losses
            entries[first, second] = Value(f"{mean:+.2f}", tally, bold=ahead)
    if not entries:
        return None
    names = [name for name in methods if any(name in pair for pair in entries)]
    rows = [
        [Value(labels[first]), *(entries.get((first, second), Value()) for second in names)]
        for first in names
    ]
    caption = [
        "Row minus column: mean difference in percentage points over the cells that both have, and the number of "
        "cells won / not told apart / lost; bold where the mean is positive and more are won than lost.",
        "A cell is won or lost if the paired t test on the means of common masks says so at 5 %, with Holm's "
        "correction over the cells of a pair. (Wilcoxon's test cannot reach 5 % with five masks.)",
    ]
    header = ["", *(labels[name] for name in names)]
    return Table(
        f"comparisons-{missing}", f"Paired comparisons, {label}", caption, [TablePart([], header, rows)]
    )


def _scores(results: Sequence[Result]) -> list[float]:
    masks = common_masks(results)
    return [mean_over(result, masks) for result in results]


def _ranks(
    methods: dict[str, dict[Place, Result]], labels: dict[str, str], missing: str, label: str
) -> Table | None:
    """Average ranks over the cells that all methods have; rather than cells, a method with few of them is left out."""
    most = max(map(len, methods.values()), default=0)
    names = [name for name, cells in methods.items() if len(cells) >= SHARE_TO_RANK * most]
    while len(names) >= FEWEST_METHODS:
        shared = [
            place
            for place in sorted(set.intersection(*(set(methods[name]) for name in names)))
            if common_masks(methods[name][place] for name in names)
        ]
        if len(shared) >= FEWEST_CELLS:
            break
        names.remove(min(names, key=lambda name: len(methods[name])))
    else:
        return None
    scores = np.array([_scores([methods[name][place] for name in names]) for place in shared])
    ranks = average_ranks(scores)
    needed = critical_difference(len(names), len(shared))
    best = float(ranks.min())
    rows = [
        [
            Value(labels[names[place]]),
            Value(f"{ranks[place]:.2f}", bold=ranks[place] == best),
            Value("" if ranks[place] == best else "yes" if ranks[place] - best > needed else "no"),
        ]
        for place in np.argsort(ranks, kind="stable")
    ]
    left_out = [labels[name] for name in methods if name not in names]
    caption = [
        f"Average rank (1 is best) over the {len(shared)} cells that all of these methods have, by their means on "
        f"common masks; Friedman's test that all rank alike: p = {friedman(scores):.2g}; Nemenyi's critical "
        f"difference at 5 %: {needed:.2f}. Both treat cells as independent, which rates of one graph are not: take "
        "them as a guide.",
        *([f"Left out, since not run on enough of the cells: {', '.join(left_out)}."] if left_out else []),
    ]
    header = ["Method", "average rank", "differs from the best"]
    return Table(f"ranks-{missing}", f"Average ranks, {label}", caption, [TablePart([], header, rows)])
