"""The numbers of a cell that people want to see, from its records."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pagnn_bench.analysis.metrics import ACCURACY, Metric
from pagnn_bench.analysis.published import published_under
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.text import count
from pagnn_bench.records.store import Trial

if TYPE_CHECKING:
    from pagnn_bench.analysis.stats import Interval


@dataclass(frozen=True)
class Summary:
    """Numbers of one cell: of accuracies in percent, or of another metric.

    Attributes:
        trials: number of values behind the mean: trials, or masks where the metric belongs to a mask.
        mean: of the mask means, so that a mask with more seeds weighs no more than the others.
        mask_std: standard deviation of the mask means, None with a single mask.
        seed_std: standard deviation over seeds inside a mask (root mean square over masks), None with single seeds.
        epochs: mean number of epochs.
        epoch_ms: milliseconds of one training epoch of one seed, evaluation excluded, in the stack as it ran.
        by_mask: all values, mask by mask.
        unit: what masks are called: ``split`` where the graph is taken as it is and only its split varies.
        natural_rmse: error of the filled-in values, where attributes are missing by nature and others were also hidden.
    """

    trials: int
    masks: int
    failed: int
    mean: float | None
    mask_std: float | None
    seed_std: float | None
    epochs: float | None
    epoch_ms: float | None
    by_mask: dict[int, list[float]]
    unit: str = "mask"
    natural_rmse: float | None = None

    @property
    def mask_means(self) -> dict[int, float]:
        """Mean of each mask."""
        return {mask: statistics.fmean(values) for mask, values in sorted(self.by_mask.items())}

    @cached_property
    def interval(self) -> Interval | None:
        """95 % confidence interval of the mean, None with a single trial."""
        from pagnn_bench.analysis.stats import mean_interval  # brings numpy, which `run` does without

        return mean_interval(list(self.by_mask.values()))


def summarise(trials: Sequence[Trial], metric: Metric = ACCURACY) -> Summary:
    """Mean and spread of a cell's trials; failed ones are counted but left out of every mean."""
    good, by_mask = [trial for trial in trials if trial.ok], metric.values(trials)
    means = [statistics.fmean(values) for values in by_mask.values()]
    variances = [statistics.variance(values) for values in by_mask.values() if len(values) > 1]
    batches = {trial.batch.path: trial.batch.facts for trial in good}
    seconds = sum(facts.get("train_seconds", 0.0) for facts in batches.values())
    seed_epochs = sum(facts.get("seed_epochs", 0) for facts in batches.values())
    errors = [
        facts["impute_rmse"] for facts in batches.values() if {"natural_share", "impute_rmse"} <= facts.keys()
    ]
    return Summary(
        trials=sum(map(len, by_mask.values())),
        masks=len(by_mask),
        failed=len(trials) - len(good),
        mean=statistics.fmean(means) if means else None,
        mask_std=statistics.stdev(means) if len(means) > 1 else None,
        seed_std=statistics.fmean(variances) ** 0.5 if variances else None,
        epochs=statistics.fmean(trial.record["epochs"] for trial in good) if good else None,
        epoch_ms=1000 * seconds / seed_epochs if seed_epochs else None,
        by_mask=by_mask,
        natural_rmse=statistics.fmean(errors) if errors else None,
        unit="split" if any(facts.get("own_split") for facts in batches.values()) else "mask",
    )


def describe(cell: Cell, trials: Sequence[Trial], apart: str = "") -> list[str]:
    """The closing lines of ``run`` for one cell; ``apart`` are the settings that tell it from others of its name."""
    summary = summarise(trials)
    data = cell.data.get("label", cell.data["name"])
    head = f"{cell.method.get('label', cell.method['name'])} on {data}, {cell.missing['name']}, rate {cell.rate:g}"
    head += f" ({apart})" if apart else ""
    if summary.mean is None:
        return [f"{head}: no finished trial"]
    line = f"{head}: test accuracy {summary.mean:.2f} %"
    spreads = [
        f"±{value:.2f} over {name}"
        for value, name in ((summary.mask_std, f"{summary.unit}s"), (summary.seed_std, "seeds"))
        if value is not None
    ]
    if spreads:
        line += f" ({', '.join(spreads)})"
    published = published_under(cell.protocol["name"])
    entry = published.entry(cell.missing["name"], cell.data["name"], cell.method["name"], cell.rate)
    if entry is not None:
        line += f"; {published.row} {entry.accuracy:.2f} ({summary.mean - entry.accuracy:+.2f})"
    details = f"  {count(summary.trials, 'trial')} on {count(summary.masks, summary.unit)}"
    if summary.failed:
        details += f", {summary.failed} failed"
    details += f"; {summary.epochs:.0f} epochs, {summary.epoch_ms:.2f} ms per epoch and seed"
    if summary.natural_rmse is not None:
        details += f"; RMSE {summary.natural_rmse:.3g} where the truth is known"
    return [line, details]
