"""All cells of a store: summarised, named, and compared with the paper's numbers."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pagnn_bench.analysis.metrics import ACCURACY, Metric
from pagnn_bench.analysis.paper import DATASETS, METHODS, TABLES
from pagnn_bench.analysis.published import Published, published_under
from pagnn_bench.analysis.summary import Summary, summarise
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.names import Name
from pagnn_bench.config.variants import find_variants
from pagnn_bench.records.store import Failure, Store, Trial

MAIN_PROTOCOL = "paper"
LABELS = {**METHODS, **DATASETS, "type1": "Type 1", "type2": "Type 2"}

INSIDE, TOLERATED, DIFFERS = "inside interval", "within tolerance", "differs"
TOO_FEW = "too few masks"  # one mask, or an interval so wide that it would contain almost any number


@dataclass(frozen=True)
class Key:
    """A cell's place in the tables; each text is a :class:`Name`, with the settings that are not default."""

    method: str
    data: str
    missing: str
    rate: float
    protocol: str


@dataclass(frozen=True)
class Result:
    """One cell that was run, or one published entry that was not.

    Attributes:
        cell: None where there is only a published number.
        labels: how the method, data, missing and protocol of ``key`` are shown to people.
        paper: the published accuracy in percent, if there is one: the paper's, or that of another paper where the
            protocol has numbers of its own (:mod:`pagnn_bench.analysis.published`).
        copied: True if the paper copied its number from the GCNmf paper.
        spread: the standard deviation that was published with it.
        metric: what ``summary`` is of; only accuracies are published.
    """

    key: Key
    labels: dict[str, str]
    cell: Cell | None = None
    trials: tuple[Trial, ...] = ()
    failures: tuple[Failure, ...] = ()
    paper: float | None = None
    copied: bool = False
    spread: float | None = None
    metric: Metric = ACCURACY

    def of(self, metric: Metric) -> Result:
        """The same cell, measured by another metric."""
        if metric == self.metric:
            return self
        return replace(self, metric=metric, paper=None, copied=False, spread=None)

    @property
    def published(self) -> Published:
        """The source of ``paper``, whether or not it has this entry."""
        return published_under(self.key.protocol)

    @property
    def is_recorded(self) -> bool:
        """False for a cell whose trials lack this metric: recorded before it existed, or with nothing to measure."""
        return self.mean is not None or not any(trial.ok for trial in self.trials)

    @property
    def is_default(self) -> bool:
        """True if no setting differs from the packaged one; only such cells count for the reproduction."""
        names = (self.key.method, self.key.data, self.key.missing)
        return not any(Name.parse(name).settings for name in names)

    @cached_property
    def summary(self) -> Summary:
        return summarise(self.trials, self.metric)

    @property
    def mean(self) -> float | None:
        return self.summary.mean

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's, in percentage points."""
        return None if self.mean is None or self.paper is None else self.mean - self.paper

    @property
    def verdict(self) -> str | None:
        if self.difference is None or self.paper is None:
            return None
        interval, allowed = self.summary.interval, tolerance(self.key.rate)
        if interval is None or interval.over == "seeds":  # how much masks vary is not known
            return DIFFERS if abs(self.difference) > TOLERANCES_OF_ONE_MASK * allowed else TOO_FEW
        inside = interval.low <= self.paper <= interval.high
        if inside and interval.high - interval.low <= 2 * WIDEST * allowed:
            return INSIDE
        if abs(self.difference) <= allowed:
            return TOLERATED
        return TOO_FEW if inside else DIFFERS

    def record(self) -> dict[str, Any]:
        """The entry of the JSON and CSV forms; accuracies in percent, sensibly rounded."""
        digits = {"seconds_per_epoch": 7}
        return {
            key: round(value, digits.get(key, 4)) if isinstance(value, float) else value
            for key, value in self.values().items()
        }

    def values(self) -> dict[str, Any]:
        """As :meth:`record`, but as computed."""
        summary, interval = self.summary, self.summary.interval
        return {
            **vars(self.key),
            **({} if self.metric == ACCURACY else {"metric": self.metric.name}),
            "mean": summary.mean,
            "std": summary.mask_std,
            "std_seeds": summary.seed_std,
            "ci_low": interval.low if interval else None,
            "ci_high": interval.high if interval else None,
            "ci_over": interval.over if interval else None,
            "n_trials": summary.trials,
            "n_masks": summary.masks,
            "paper": self.paper,
            "difference": self.difference,
            "verdict": self.verdict,
            "epochs": summary.epochs,
            "seconds_per_epoch": summary.epoch_ms and summary.epoch_ms / 1000,
        }


# An interval whose half-width is more than this multiple of the tolerance is too wide to count as agreement.
WIDEST = 2.0
# How far off a single mask must be to differ, as a multiple of the tolerance: 2 points up to rate 0.5, 4 at 0.7, 10 at
# 0.9. The standard deviation between masks of one cell is about 0.5, 1 and 2 in the median of our results.
TOLERANCES_OF_ONE_MASK = 4.0


def tolerance(rate: float) -> float:
    """By how many points our number and the paper's may differ and still agree.

    The paper's entries look like means of three to five numbers, which vary the more the fewer attributes are left.
    """
    return 0.5 if rate <= 0.5 else 1.0 if rate <= 0.7 else 2.5


@dataclass(frozen=True)
class Results:
    """What a results folder holds, in the order of the paper; what the paper does not have comes after.

    Attributes:
        all: every cell that has a trial or a failure, under every protocol.
        damaged: files that could not be read, and why.
    """

    all: list[Result]
    damaged: dict[Path, str]

    @property
    def protocols(self) -> list[str]:
        """The protocols with results, the paper's first, then by number of cells."""
        names = [result.key.protocol for result in self.all]
        return sorted(set(names), key=lambda name: (name != MAIN_PROTOCOL, -names.count(name), name))

    @property
    def families(self) -> dict[str, list[str]]:
        """The protocols by their plain names: ``grid`` → ``grid``, ``grid[weight_decay=0.05]`` and so on."""
        families: dict[str, list[str]] = {}
        for name in self.protocols:
            families.setdefault(Name.parse(name).plain, []).append(name)
        return families

    def by(self, metric: Metric) -> Results:
        """The same cells, measured by another metric."""
        return replace(self, all=[result.of(metric) for result in self.all])

    def under(self, protocol: str) -> list[Result]:
        """The cells under one protocol, and the published entries that were not run, as results without trials."""
        run = [result for result in self.all if result.key.protocol == protocol]
        if any(result.metric != ACCURACY for result in run):
            return _in_order(run)  # only accuracies are published
        return _in_order([*run, *_published_only(protocol, {result.key for result in run})])


def load_results(store: Store) -> Results:
    """Read all cells of a store."""
    cells = list(store.cells())
    variants = find_variants(cells)
    results = []
    for cell in cells:
        trials, failures = store.load(cell), store.failures(cell)
        if not trials and not failures:
            continue
        settings = variants[cell.hash]
        labels = {group: str(Name(_label(getattr(cell, group)), settings[group])) for group in settings}
        published = published_under(cell.protocol["name"])
        entry = published.entry(cell.missing["name"], cell.data["name"], cell.method["name"], cell.rate)
        results.append(
            Result(
                key_of(cell, settings),
                labels,
                cell,
                tuple(trials.values()),
                tuple(failures),
                entry.accuracy if entry else None,
                bool(entry and entry.copied),
                entry.spread if entry else None,
            )
        )
    return Results(_in_order(results), store.damaged)


def key_of(cell: Cell, settings: Mapping[str, str]) -> Key:
    """A cell's place in the tables, given its settings that are not default, by group."""
    names = {group: Name(getattr(cell, group)["name"], own) for group, own in settings.items()}
    return Key(rate=cell.rate, **names)


def _label(config: Mapping[str, Any]) -> str:
    return str(config.get("label") or LABELS.get(config["name"], config["name"]))


def _published_only(protocol: str, run: set[Key]) -> Iterable[Result]:
    published = published_under(protocol)
    for (missing, data, method, rate), entry in published.entries.items():
        key = Key(method, data, missing, rate, protocol)
        if key not in run:
            labels = {"method": published.methods[method], "data": published.datasets[data]}
            labels |= {"missing": LABELS[missing], "protocol": protocol}
            yield Result(key, labels, paper=entry.accuracy, copied=entry.copied, spread=entry.spread)


def in_order(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Each name once: those of the paper in its order, each followed by its variants, then the others."""
    return sorted(set(names), key=lambda name: _place(name, known))


def _place(name: str, known: Iterable[str]) -> tuple[int, str]:
    order = {entry: number for number, entry in enumerate(known)}
    return order.get(Name.parse(name).plain, len(order)), name


def _in_order(results: Iterable[Result]) -> list[Result]:
    return sorted(
        results,
        key=lambda result: (
            _place(result.key.protocol, [MAIN_PROTOCOL]),
            _place(result.key.missing, TABLES.values()),
            _place(result.key.data, DATASETS),
            _place(result.key.method, METHODS),
            result.key.rate,
        ),
    )


Place = tuple[str, str, float]  # missing, data, rate


def by_method(results: Iterable[Result]) -> dict[str, dict[Place, Result]]:
    """Method → place → its result, if it has one, in the paper's order; expects a single protocol."""
    run = [result for result in results if result.mean is not None]
    methods = in_order((result.key.method for result in run), METHODS)
    places: dict[str, dict[Place, Result]] = {method: {} for method in methods}
    for result in run:
        places[result.key.method][result.key.missing, result.key.data, result.key.rate] = result
    return places


def common_masks(results: Iterable[Result]) -> set[int]:
    """The masks that all of these have; only means over the same masks can be compared."""
    masks = [set(result.summary.by_mask) for result in results]
    return set.intersection(*masks) if masks else set()


def mean_over(result: Result, masks: Iterable[int]) -> float:
    """The mean over these masks, in percent."""
    return statistics.fmean(result.summary.mask_means[mask] for mask in masks)


def paired_differences(first: Result, second: Result) -> list[float]:
    """First minus second on every mask that both have, from means over seeds; in percentage points."""
    ours, theirs = first.summary.mask_means, second.summary.mask_means
    return [ours[mask] - theirs[mask] for mask in sorted(common_masks([first, second]))]
