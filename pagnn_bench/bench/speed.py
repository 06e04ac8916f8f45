"""From repeats to ratios. Throughput is in seed-epochs per second: train step and evaluation of one seed."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from pagnn_bench.analysis.stats import quartiles
from pagnn_bench.bench.document import Document
from pagnn_bench.bench.targets import Target, target_of

OURS = "ours"
# The reference with an edge list, as in every tutorial, and with a sparse adjacency.
PLAIN, CSR = "plain", "csr"


@dataclass(frozen=True)
class Row:
    """One contender.

    Attributes:
        data, missing, rate: where.
        method, label, family: whose network it is; the family decides its reference and its target.
        side: ``ours``, or a form of the reference: ``plain``, ``csr``.
        seeds: how many were trained at once.
        epochs: in each repeat.
        train_ms, eval_ms: milliseconds of one epoch of one seed, one entry per repeat.
        prepare_seconds: imputation and aggregation, once per mask; not in the milliseconds.
        base_mb, peak_mb: resident memory of a separate process, after imports and data, and at its peak.
        device_mb: peak GPU memory of its tensors.
        precision: of dense inputs and their products; the reference has float32 only.
    """

    data: str
    missing: str
    rate: float
    method: str
    label: str
    family: str
    side: str
    seeds: int
    epochs: int
    train_ms: list[float]
    eval_ms: list[float]
    prepare_seconds: float | None = None
    base_mb: float | None = None
    peak_mb: float | None = None
    device_mb: float | None = None
    precision: str = "float32"

    @property
    def repeats(self) -> list[float]:
        """Milliseconds per seed-epoch, train step and evaluation."""
        return [train + evaluation for train, evaluation in zip(self.train_ms, self.eval_ms)]

    @property
    def ms(self) -> float:
        """Median over the repeats."""
        return statistics.median(self.repeats)

    @property
    def quartiles(self) -> tuple[float, float]:
        return quartiles(self.repeats)

    @property
    def throughput(self) -> float:
        """Seed-epochs per second."""
        return 1000.0 / self.ms

    @property
    def extra_mb(self) -> float | None:
        """Peak memory beyond imports and data."""
        return None if self.peak_mb is None or self.base_mb is None else self.peak_mb - self.base_mb

    def record(self) -> dict[str, Any]:
        """The row as plain data, rounded to what a clock can resolve."""
        values = {
            key: value for key, value in asdict(self).items() if key != "device_mb" or value is not None
        }
        return {**values, **{key: [round(ms, 4) for ms in values[key]] for key in ("train_ms", "eval_ms")}}


def rows_of(document: Document) -> list[Row]:
    """The rows of a document of kind ``speed``; keys that a later version may add are left out."""
    names = {field.name for field in fields(Row)}
    return [Row(**{key: value for key, value in row.items() if key in names}) for row in document["rows"]]


def place_of(row: Row) -> tuple[str, str, float]:
    """(data, missing, rate): contenders of one place were measured in turn and can be compared."""
    return row.data, row.missing, row.rate


def reference_of(row: Row, rows: Iterable[Row], side: str = PLAIN) -> Row | None:
    """The reference that one of our rows is compared with."""
    for other in rows:
        if other.side == side and place_of(other) == place_of(row) and other.method == row.method:
            return other
    return None


def ratio(ours: Row, reference: Row) -> float:
    """Our throughput over that of the reference, from the medians."""
    return ours.throughput / reference.throughput


def ratio_range(ours: Row, reference: Row) -> tuple[float, float]:
    """Smallest and largest ratio of a single round; in a round all contenders were measured within a short time."""
    ratios = [theirs / own for own, theirs in zip(ours.repeats, reference.repeats)]
    return min(ratios), max(ratios)


def verdict(ours: Row, reference: Row | None) -> tuple[Target, bool] | None:
    """(target, met) of one of our rows, None if it has no target."""
    target = target_of(ours.family, ours.data, ours.missing, ours.seeds, ours.precision)
    if target is None or reference is None:
        return None
    return target, ratio(ours, reference) >= target.ratio
