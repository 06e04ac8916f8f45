"""How far a search on validation data can be trusted: what it gained there, and how much of that on test data."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from scipy.stats import spearmanr

from pagnn_bench.analysis.tables.layout import Table, TablePart, Value, signed
from pagnn_bench.analysis.tables.results import Result, Results, paired_differences
from pagnn_bench.config.identity import TRIES, Cell

AS_GOOD = 1.0  # points of validation accuracy: settings this close to the best may be just as good


class _Try(NamedTuple):
    """One setting of a search: mean accuracies in percent over its seeds."""

    cell: Cell
    validation: float
    test: float


def search_table(results: Results, protocol: str = "tuned", published: str = "paper") -> Table | None:
    """One row per searched cell: how flat the optimum is, and what the search gained; None without any search.

    The test accuracy of a setting is only reported here; settings are chosen by validation accuracy.
    """
    tried: dict[tuple[Any, ...], list[Result]] = defaultdict(list)
    for result in results.all:
        if result.cell is not None and result.cell.protocol["name"] == TRIES:
            tried[_place(result.cell)].append(result)
    as_published = {replace(result.key, protocol=""): result for result in results.under(published)}
    rows = []
    for result in results.under(protocol):
        if result.cell is None or result.mean is None:
            continue
        mask = result.cell.protocol["tuning"]["mask"]
        scores = [_score(setting, mask) for setting in tried[_place(result.cell)]]
        tries = [score for score in scores if score is not None]
        before = as_published.get(replace(result.key, protocol=""))
        if tries:
            rows.append(_row(result, tries, before))
    if not rows:
        return None
    caption = [
        "Validation: accuracy on the mask of the search, mean over its seeds.",
        f"As good: settings within {AS_GOOD:g} point of the best on validation data.",
        "Agreement: rank correlation of validation and test accuracy over all settings tried.",
        "Gain: of the chosen setting over the published one, in points; on test data paired on the reported masks.",
    ]
    header = ["", "dataset", "method", "rate", "tried", "validation", "as good", "agreement"]
    header += ["gain in validation", "gain in test"]
    return Table("search", "What the search brought", caption, [TablePart([], header, rows, 3)])


def _row(result: Result, tries: Sequence[_Try], before: Result | None) -> list[Value]:
    best = max(score.validation for score in tries)
    as_good = sum(score.validation >= best - AS_GOOD for score in tries)
    start = next((score for score in tries if _is_published(score.cell, before)), None)
    agreement = _rank_correlation(tries)
    paired = paired_differences(result, before) if before is not None and before.mean is not None else []
    texts = [
        *(result.labels[group] for group in ("missing", "data", "method")),
        f"{result.key.rate:g}",
        str(len(tries)),
        f"{best:.1f}",
        str(as_good),
        "" if agreement is None else f"{agreement:.2f}",
        "" if start is None else signed(best - start.validation, 1),
        signed(statistics.fmean(paired), 1) if paired else "",
    ]
    return [Value(text) for text in texts]


def _place(cell: Cell) -> tuple[Any, ...]:
    return cell.method["name"], cell.data["name"], cell.missing["name"], cell.rate


def _score(tried: Result, mask: int) -> _Try | None:
    """The score on the mask of the search; None for a setting that was tried on another mask, or diverged."""
    records = [trial.record for trial in tried.trials if trial.ok and trial.batch.mask == mask]
    if not records or tried.cell is None:
        return None
    validation, test = (
        statistics.fmean(100 * record[key] for record in records) for key in ("val_acc", "test_acc")
    )
    return _Try(tried.cell, validation, test)


def _is_published(cell: Cell, published: Result | None) -> bool:
    """Whether a try has the settings of the cell as published, apart from the protocol's name and search."""
    if published is None or published.cell is None:
        return False
    return _settings(cell) == _settings(published.cell)


def _settings(cell: Cell) -> dict[str, Any]:
    identity = cell.identity
    protocol = {key: value for key, value in identity["protocol"].items() if key not in ("name", "tuning")}
    return {**identity, "protocol": protocol}


def _rank_correlation(tries: Sequence[_Try]) -> float | None:
    """Spearman's, None where it is not defined."""
    if len({own.validation for own in tries}) < 2 or len({own.test for own in tries}) < 2:
        return None
    return float(spearmanr([own[1:] for own in tries]).statistic)
