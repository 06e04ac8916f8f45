"""Claims about accuracy: the lead of one method over another on the same masks, averaged over the paper's cells."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from pagnn_bench.analysis.claims.parts import FAILS, HOLDS, MIXED, UNDECIDED, ClaimPart
from pagnn_bench.analysis.paper import DATASETS, METHODS, RATES, paper_entries
from pagnn_bench.analysis.stats import CONFIDENCE, Average, Comparison, average_over_cells, compare, holm
from pagnn_bench.analysis.tables.layout import signed
from pagnn_bench.analysis.tables.results import LABELS, Result, by_method, in_order, paired_differences

# An average on fewer degrees of freedom hangs on one cell with two masks, and Satterthwaite's approximation is then too
# sure of itself: differences drawn with no lead at all, but the spreads of such comparisons of ours, pass at 8 to 12 %
# instead of 5.
FEWEST_DF = 3.0

Cells: TypeAlias = Mapping[tuple[str, float], Result]  # (data, rate) → of one method and missing type
Differences: TypeAlias = Mapping[tuple[str, float], Sequence[float]]  # (data, rate) → of two masks or more


def accuracy_parts(
    results: Sequence[Result], pairs: Sequence[tuple[str, str]], kinds: Sequence[str]
) -> list[ClaimPart]:
    """The comparisons of one claim: every pair (own, rival) on every missing type."""
    methods = by_method(result for result in results if result.paper is not None and result.is_default)
    cells = {
        (name, missing): {place[1:]: cell for place, cell in found.items() if place[0] == missing}
        for (name, found), missing in itertools.product(methods.items(), kinds)
    }
    compared = [
        _compared(own, rival, missing, cells.get((own, missing), {}), cells.get((rival, missing), {}))
        for missing, (own, rival) in itertools.product(kinds, pairs)
    ]
    corrected = iter(holm([found.average.p_value for _, found, _ in compared if found.average is not None]))
    decided = []
    for part, comparison, told in compared:
        if comparison.average is not None:
            p = next(corrected)
            verdict = _verdict(comparison, comparison.average, told) if p < 1 - CONFIDENCE else UNDECIDED
            numbers = _numbers(comparison, comparison.average, told, p)
            part = replace(part, verdict=verdict, numbers=numbers, where=_where(told))
        decided.append(part)
    return decided


def _compared(
    own: str, rival: str, missing: str, ours: Cells, theirs: Cells
) -> tuple[ClaimPart, Comparison, Differences]:
    """One comparison, yet to be decided, and what it rests on."""
    paired = {place: paired_differences(ours[place], theirs[place]) for place in ours if place in theirs}
    told = {place: by_mask for place, by_mask in paired.items() if len(by_mask) > 1}
    comparison = compare([*told.values()])
    absent = [METHODS[name] for name, cells in ((own, ours), (rival, theirs)) if not cells]
    if comparison.average is not None:
        df = comparison.average.interval.df
        few = f"It hangs on a cell with too few masks ({df:.1f} degrees of freedom)."
        note = few if df < FEWEST_DF else ""
    elif absent:
        note = f"Not run: {', '.join(absent)}."
    elif paired:
        note = "A single mask in common, which tells nothing of its variation."
    else:
        note = "No cell in common."
    what = f"{METHODS[own]} against {METHODS[rival]}, {LABELS[missing]}"
    paper = _in_the_paper(own, rival, missing, told)
    part = ClaimPart(what, UNDECIDED, paper=paper, note=note, was_run=not absent)
    return part, comparison, told


def _verdict(comparison: Comparison, average: Average, told: Differences) -> str:
    """Of a comparison whose average differs from zero.

    A large lead in few cells, or one that turns round at other rates, is no lead in general.
    """
    if average.interval.df < FEWEST_DF:
        return UNDECIDED
    sign = 1 if average.interval.mean > 0 else -1
    of_its_sign = comparison.ahead if sign > 0 else comparison.behind
    by_rate = _by_rate(told).values()
    corrected = holm([found.p_value for found in by_rate])
    turned = [p < 1 - CONFIDENCE and sign * found.interval.mean < 0 for found, p in zip(by_rate, corrected)]
    if 2 * of_its_sign <= comparison.cells or any(turned):
        return MIXED
    return HOLDS if sign > 0 else FAILS


def _by_rate(told: Differences) -> dict[float, Average]:
    """The average over the cells of every rate."""
    found = {
        rate: average_over_cells([by_mask for (_, other), by_mask in told.items() if other == rate])
        for rate in sorted({rate for _, rate in told})
    }
    return {rate: average for rate, average in found.items() if average is not None}


def _where(places: Collection[tuple[str, float]]) -> str:
    """What these cells of one missing type are, if they are not all of the paper's."""
    datasets = in_order((data for data, _ in places), DATASETS)
    rates = sorted({rate for _, rate in places})
    words = [f"in {len(places)} cells"] if len(places) < len(datasets) * len(rates) else []
    if len(datasets) < len(DATASETS):
        words.append(f"on {', '.join(DATASETS[data] for data in datasets)}")
    if len(rates) < len(RATES):
        words.append(f"at rate{'s' * (len(rates) > 1)} {', '.join(f'{rate:g}' for rate in rates)}")
    return " ".join(words)


def _numbers(comparison: Comparison, average: Average, told: Differences, p: float) -> dict[str, str]:
    mean, low, high = map(signed, (average.interval.mean, average.interval.low, average.interval.high))
    by_rate = _by_rate(told)
    return {
        "lead (95 % interval)": f"{mean} ({low} to {high})",
        "p": "< 0.001" if p < 0.001 else f"{p:.3f}",
        **{f"at {r:g}": signed(by_rate[r].interval.mean) if r in by_rate else "" for r in RATES},
        "ahead in": f"{comparison.ahead} of {comparison.cells}",
        "beyond chance": f"{comparison.wins} : {comparison.losses}",
        "on two masks": str(comparison.thin or ""),
    }


def _in_the_paper(
    own: str, rival: str, missing: str, places: Collection[tuple[str, float]]
) -> dict[str, str]:
    """The same of the paper's numbers: on the cells that we have, or on all of them where we have none."""
    entries = paper_entries()
    differences = [
        entry.accuracy - entries[missing, data, rival, rate].accuracy
        for (kind, data, method, rate), entry in entries.items()
        if (kind, method) == (missing, own)
        and (missing, data, rival, rate) in entries
        and (not places or (data, rate) in places)
    ]
    ahead = sum(difference > 0 for difference in differences)
    return {
        "paper's lead": signed(statistics.fmean(differences)),
        "paper ahead in": f"{ahead} of {len(differences)}",
    }
