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

# With fewer degrees of freedom an average hinges on one cell with two masks, and Satterthwaite's approximation is
# overconfident: simulated differences with no lead, but with the spreads of our comparisons, pass at 8 to 12 % instead
# of 5.
FEWEST_DF = 3.0

Cells: TypeAlias = Mapping[tuple[str, float], Result]  # (data, rate) → of one method and missing type
Differences: TypeAlias = Mapping[tuple[str, float], Sequence[float]]  # (data, rate) → of two masks or more


def accuracy_parts(
    results: Sequence[Result], pairs: Sequence[tuple[str, str]], kinds: Sequence[str]
) -> list[ClaimPart]:
    """The comparisons of one claim: every pair (own, rival) on every missing type."""
    methods = by_method(result for result in results if result.paper is not None and result.is_default)
    cells = {
        (name, missing): {place[1:]: cell for place, cell in of_method.items() if place[0] == missing}
        for (name, of_method), missing in itertools.product(methods.items(), kinds)
    }
    undecided = [
        _undecided(own, rival, missing, cells.get((own, missing), {}), cells.get((rival, missing), {}))
        for missing, (own, rival) in itertools.product(kinds, pairs)
    ]
    averages = [comparison.average for _, comparison, _ in undecided]
    corrected = iter(holm([average.p_value for average in averages if average is not None]))
    decided = []
    for part, comparison, differences in undecided:
        if comparison.average is not None:
            p = next(corrected)
            verdict = _verdict(comparison, comparison.average, differences)
            part = replace(
                part,
                verdict=verdict if p < 1 - CONFIDENCE else UNDECIDED,
                numbers=_numbers(comparison, comparison.average, differences, p),
                where=_where(differences),
            )
        decided.append(part)
    return decided


def _undecided(
    own: str, rival: str, missing: str, ours: Cells, theirs: Cells
) -> tuple[ClaimPart, Comparison, Differences]:
    """One comparison, yet to be decided, and what it rests on."""
    paired = {place: paired_differences(ours[place], theirs[place]) for place in ours if place in theirs}
    differences = {place: by_mask for place, by_mask in paired.items() if len(by_mask) > 1}
    comparison = compare([*differences.values()])
    absent = [METHODS[name] for name, cells in ((own, ours), (rival, theirs)) if not cells]
    if comparison.average is not None:
        df = comparison.average.interval.df
        too_few = f"It hinges on a cell with too few masks ({df:.1f} degrees of freedom)."
        note = too_few if df < FEWEST_DF else ""
    elif absent:
        note = f"Not run: {', '.join(absent)}."
    elif paired:
        note = "Only one mask in common, so its variation is unknown."
    else:
        note = "No cell in common."
    title = f"{METHODS[own]} against {METHODS[rival]}, {LABELS[missing]}"
    paper = _paper_numbers(own, rival, missing, differences)
    part = ClaimPart(title, UNDECIDED, paper=paper, note=note, was_run=not absent)
    return part, comparison, differences


def _verdict(comparison: Comparison, average: Average, differences: Differences) -> str:
    """The verdict on a comparison whose average differs from zero.

    A large lead in a few cells, or one that is reversed at other rates, is no general lead.
    """
    if average.interval.df < FEWEST_DF:
        return UNDECIDED
    sign = 1 if average.interval.mean > 0 else -1
    of_its_sign = comparison.ahead if sign > 0 else comparison.behind
    by_rate = _by_rate(differences).values()
    corrected = holm([of_rate.p_value for of_rate in by_rate])
    reversed_at = [
        p < 1 - CONFIDENCE and sign * of_rate.interval.mean < 0 for of_rate, p in zip(by_rate, corrected)
    ]
    if 2 * of_its_sign <= comparison.cells or any(reversed_at):
        return MIXED
    return HOLDS if sign > 0 else FAILS


def _by_rate(differences: Differences) -> dict[float, Average]:
    """The average over the cells of each rate."""
    averages = {
        rate: average_over_cells([by_mask for (_, other), by_mask in differences.items() if other == rate])
        for rate in sorted({rate for _, rate in differences})
    }
    return {rate: average for rate, average in averages.items() if average is not None}


def _where(places: Collection[tuple[str, float]]) -> str:
    """Which cells of one missing type these are, unless they are all of the paper's."""
    datasets = in_order((data for data, _ in places), DATASETS)
    rates = sorted({rate for _, rate in places})
    words = [f"in {len(places)} cells"] if len(places) < len(datasets) * len(rates) else []
    if len(datasets) < len(DATASETS):
        words.append(f"on {', '.join(DATASETS[data] for data in datasets)}")
    if len(rates) < len(RATES):
        words.append(f"at rate{'s' * (len(rates) > 1)} {', '.join(f'{rate:g}' for rate in rates)}")
    return " ".join(words)


def _numbers(comparison: Comparison, average: Average, differences: Differences, p: float) -> dict[str, str]:
    mean, low, high = map(signed, (average.interval.mean, average.interval.low, average.interval.high))
    by_rate = _by_rate(differences)
    return {
        "lead (95 % interval)": f"{mean} ({low} to {high})",
        "p": "< 0.001" if p < 0.001 else f"{p:.3f}",
        **{f"at {r:g}": signed(by_rate[r].interval.mean) if r in by_rate else "" for r in RATES},
        "ahead in": f"{comparison.ahead} of {comparison.cells}",
        "beyond chance": f"{comparison.wins} : {comparison.losses}",
        "on two masks": str(comparison.thin or ""),
    }


def _paper_numbers(
    own: str, rival: str, missing: str, places: Collection[tuple[str, float]]
) -> dict[str, str]:
    """The same from the paper's numbers: on the cells that we have, or on all of them where we have none."""
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
