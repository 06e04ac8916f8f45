"""Results on masks that are not random, each with its counterpart on random masks that hide as much of the same graph.

Whole nodes are compared with type 1, single entries with type 2. Masks of two missing types are separate draws, so
differences between types are not paired.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pagnn_bench.analysis.paper import DATASETS, METHODS
from pagnn_bench.analysis.tables.results import Result, common_masks, in_order, mean_over, paired_differences
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.names import Name

RANDOM = {"rows": "type1", "cells": "type2"}  # pattern of a mechanism → the type that hides as much at random
UNLABELLED = "unlabelled"  # has no rate, and no random counterpart
ORDER = ("type1", "degree", "class", "region", "shift", "type2", "neighbour", "self")
# The same network on the same filling, with and without the mask.
SEES_MASK, SEES_NONE = "mask_concat", "zero"


@dataclass(frozen=True)
class Row:
    """One missing type on one graph at one rate: method → result."""

    data: str
    rate: float
    title: str
    results: dict[str, Result] = field(default_factory=dict)

    @property
    def cell(self) -> Cell:
        cell = next(iter(self.results.values())).cell
        assert cell is not None
        return cell

    @property
    def label(self) -> str:
        """Of the graph."""
        return next(iter(self.results.values())).labels["data"]

    @cached_property
    def masks(self) -> set[int]:
        """Those that all methods of the row have."""
        return common_masks(self.results.values())

    def mask_fact(self, name: str) -> float | None:
        """A recorded fact about the masks, averaged over them, whatever the method; None if it was not recorded."""
        facts = {
            trial.mask: trial.batch.facts[name]
            for result in self.results.values()
            for trial in result.trials
            if name in trial.batch.facts
        }
        return statistics.fmean(facts.values()) if facts else None

    @cached_property
    def mask_leads(self) -> list[float]:
        """Points by which the method that sees the mask is ahead of the one that does not, mask by mask."""
        both = [self.results.get(method) for method in (SEES_MASK, SEES_NONE)]
        return paired_differences(both[0], both[1]) if both[0] and both[1] else []


@dataclass(frozen=True)
class Study:
    """The results of mechanisms under one protocol, and their random counterparts.

    Attributes:
        rows: (data, rate, title of the missing type) → its results, in the order of tables.
        unlabelled: those of ``missing=unlabelled``, one row per graph.
    """

    rows: dict[tuple[str, float, str], Row]
    unlabelled: list[Row]

    @property
    def mechanisms(self) -> list[Row]:
        return [row for row in self.rows.values() if "by" in row.cell.missing]

    @property
    def settings(self) -> list[tuple[str, float]]:
        return list(dict.fromkeys((row.data, row.rate) for row in self.rows.values()))

    def methods(self, rows: Iterable[Row]) -> list[str]:
        return in_order((method for row in rows for method in row.results), METHODS)

    def label(self, method: str) -> str:
        rows = [*self.rows.values(), *self.unlabelled]
        return next(row.results[method].labels["method"] for row in rows if method in row.results)

    def at_random(self, row: Row) -> Row | None:
        """The row of random masks that a mechanism is compared with."""
        pattern = RANDOM[row.cell.missing["pattern"]]
        here = (other for other in self.rows.values() if (other.data, other.rate) == (row.data, row.rate))
        return next((other for other in here if other.cell.missing["name"] == pattern), None)

    def cost(self, row: Row, method: str) -> float | None:
        """Accuracy under a mechanism minus accuracy on random masks, in points.

        Some masks are harder than others, so each mean is over the masks that all methods of its row have.
        """
        random = self.at_random(row)
        if random is None or method not in row.results or method not in random.results:
            return None
        if not (row.masks and random.masks):
            return None
        return mean_over(row.results[method], row.masks) - mean_over(random.results[method], random.masks)


def read_study(results: Sequence[Result]) -> Study:
    """Pick from the results of one protocol the mechanisms, and random masks on the same graphs at the same rates."""
    run = [result for result in results if result.cell is not None and result.mean is not None]
    rows: dict[tuple[str, float, str], Row] = {}
    unlabelled: dict[str, Row] = {}
    of_mechanism = [result for result in run if _by(result)]
    methods = {result.key.method for result in of_mechanism}
    settings = {(result.key.data, _rate(result)) for result in of_mechanism if _by(result) != UNLABELLED}
    for result in run:
        data, rate, title = result.key.data, _rate(result), _title(result)
        if _by(result) == UNLABELLED:
            unlabelled.setdefault(data, Row(data, rate, title)).results[result.key.method] = result
        elif _by(result) or (
            result.key.missing in RANDOM.values()
            and (data, rate) in settings
            and result.key.method in methods
        ):
            row = rows.setdefault((data, rate, title), Row(data, rate, title))
            row.results[result.key.method] = result
    graphs = in_order([*unlabelled, *(key[0] for key in rows)], DATASETS)
    ordered = sorted(rows.items(), key=lambda item: (graphs.index(item[0][0]), item[0][1], place(item[1])))
    return Study(dict(ordered), [unlabelled[data] for data in graphs if data in unlabelled])


def mean_of(result: Result) -> float:
    assert result.mean is not None
    return result.mean


def _by(result: Result) -> str:
    assert result.cell is not None
    return str(result.cell.missing.get("by", ""))


def _rate(result: Result) -> float:
    """The rate of the cell, or of the incomplete side of a shift."""
    assert result.cell is not None
    return max(result.cell.rate, result.cell.missing.get("test_rate") or 0.0)


def _title(result: Result) -> str:
    """The label of the missing type; for a shift, which side is complete."""
    assert result.cell is not None
    settings = Name.parse(result.key.missing).settings
    if _by(result) == "shift" and "," not in settings and settings.partition("=")[0] in ("", "test_rate"):
        if result.cell.missing["test_rate"] == 0:
            return "Shift, test nodes complete"
        if result.cell.rate == 0:
            return "Shift, test nodes incomplete"
    return result.labels["missing"]


def place(row: Row) -> tuple[int, str]:
    name = row.cell.missing["name"]
    return ORDER.index(name) if name in ORDER else len(ORDER), row.title
