"""The ranking as a table for people and as records for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pagnn_bench.analysis.ranking.advice import choose
from pagnn_bench.analysis.ranking.order import Place, Ranking
from pagnn_bench.analysis.stats import Interval
from pagnn_bench.analysis.tables.layout import Table, TablePart, Value, three_digits
from pagnn_bench.config.text import count

DIGITS = 6  # of numbers in records


def ranking_table(ranking: Ranking, title: str, notes: Sequence[str] = ()) -> Table:
    """The best method first; ``notes`` are appended to the caption."""
    chosen = choose(ranking)
    rows = [_row(place, ranking, place is chosen) for place in ranking.places]
    # Columns that are empty for every method are left out.
    header = [name for name in rows[0] if any(row[name].text for row in rows)] if rows else []
    ranked = len(ranking.ranked)
    rules = frozenset({ranked} if 0 < ranked < len(rows) else ())
    part = TablePart([], header, [[row[name] for name in header] for row in rows], stub=2, rules=rules)
    return Table("ranking", title, [*_caption(ranking), *notes], [part])


def _row(place: Place, ranking: Ranking, chosen: bool) -> dict[str, Value]:
    """Heading → entry."""
    contender = place.contender
    behind = "" if place.behind is None or place is ranking.places[0] else f"{place.behind:.2f}"
    verdict = "" if place.p_value is None else "yes" if place.apart else "no"
    return {
        "rank": Value("" if place.rank is None else str(place.rank)),
        "method": Value(contender.label, bold=chosen),
        "accuracy %": Value("" if place.mean is None else f"{place.mean:.2f}", _half(place.interval)),
        "behind": Value(behind, _between(place.margin)),
        "told apart": Value(verdict, f"(p = {place.p_value:.2g})" if place.p_value is not None else ""),
        "s per trial": Value("" if contender.seconds is None else three_digits(contender.seconds)),
        "RMSE": Value("" if contender.rmse is None else f"{contender.rmse:.3g}"),
        "note": Value(_note(place, ranking)),
    }


def _half(interval: Interval | None) -> str:
    return "" if interval is None else f"±{(interval.high - interval.low) / 2:.2f}"


def _between(interval: Interval | None) -> str:
    return "" if interval is None else f"({interval.low:.2f} to {interval.high:.2f})"


def _note(place: Place, ranking: Ranking) -> str:
    contender, notes = place.contender, []
    if contender.failed:
        notes.append(f"{contender.failed} of {contender.wanted} trials failed")
    if place.rank is None and place.mean is not None:
        notes.append(f"not ranked: {contender.summary.masks} of {len(ranking.masks)} {ranking.unit}s")
    return "; ".join(notes)


def _caption(ranking: Ranking) -> list[str]:
    """How the numbers were computed and what they mean."""
    ranked, unit = ranking.ranked, ranking.unit
    if not ranked:
        return []
    number = len(ranking.masks)
    over = f"{number} {unit}s" if number > 1 else f"the seeds on one {unit}"
    lines = [
        f"Accuracy: mean of the test accuracy over {over}, ± half of its 95 % interval; bold: the method to use."
    ]
    if ranking.tested:
        comparisons = count(len(ranked) - 1, "comparison")
        how = f"paired on the same {unit}s" if number > 1 else "over the seeds"
        lines.append(
            f"Behind: points behind the best, {how}, with a 95 % interval. Told apart: p of a t test against the best "
            f"is below 0.05. Both are corrected for {comparisons} (Bonferroni), since the same numbers chose the best."
        )
        which = f"further {unit}s" if number > 1 else f"further seeds on this {unit}"
        lines.append(f"All this is about {which} of this graph, not about other graphs.")
    if any(place.contender.rmse is not None for place in ranking.places):
        lines.append(
            "RMSE: of the filled-in values, where the truth is known and only hidden from the methods."
        )
    if any(place.contender.failed for place in ranking.places):
        lines.append("Failed trials are left out of every mean.")
    return lines


def ranking_records(ranking: Ranking) -> list[dict[str, Any]]:
    """One entry per method, best first, for CSV, JSON and data frames; accuracies in percent."""
    chosen = choose(ranking)
    return [{key: _rounded(value) for key, value in _record(p, p is chosen).items()} for p in ranking.places]


def _rounded(value: Any) -> Any:
    return round(value, DIGITS) if isinstance(value, float) else value


def _record(place: Place, chosen: bool) -> dict[str, Any]:
    contender, interval, margin = place.contender, place.interval, place.margin
    return {
        "rank": place.rank,
        "method": contender.name,
        "label": contender.label,
        "mean": place.mean,
        "ci_low": interval.low if interval else None,
        "ci_high": interval.high if interval else None,
        "ci_over": interval.over if interval else None,
        "behind": place.behind,
        "behind_low": margin.low if margin else None,
        "behind_high": margin.high if margin else None,
        "p_value": place.p_value,
        "told_apart": None if place.p_value is None else place.apart,
        "advised": chosen,
        "seconds_per_trial": contender.seconds,
        "impute_rmse": contender.rmse,
        "n_trials": contender.summary.trials,
        "n_failed": contender.failed,
        "n_masks": contender.summary.masks,
        "reason": contender.reason,
    }
