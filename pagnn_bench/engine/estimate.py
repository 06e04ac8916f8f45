"""How long a plan will take, estimated from recorded times."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from pagnn_bench.config.identity import Cell
from pagnn_bench.engine.plan import Batch
from pagnn_bench.records.batch import StoredBatch
from pagnn_bench.records.store import Store

Likeness: TypeAlias = tuple[str, ...]


class Cost(NamedTuple):
    """The cost of a finished batch: its number of trials, the seconds of its preparation and of each trial."""

    stack: int
    prepare: float
    trial: float


def estimate_seconds(plan: Sequence[Batch], store: Store, kind: str | None = None) -> tuple[float, int]:
    """Rough time of a plan in one process.

    A batch is assumed to cost the same as finished ones of the same method, data and missing type, else of the same
    method and data, else of the same data. Of these, the ones nearest in size count, because a trial in a large stack
    takes a fraction of the time of a single one. Preparation, which can be most of it, counts once per mask.

    Args:
        plan: what is to be trained.
        store: what was trained so far.
        kind: ``cpu`` or ``cuda``: only what was trained on such a device counts. None: everything.

    Returns:
        (seconds, number of trials of unknown cost, which are not in the sum).
    """
    measured = _measured(store, kind)
    seconds, unknown = 0.0, 0
    prepared: set[tuple[str, int]] = set()
    for batch in plan:
        costs = next((measured[like] for like in _likenesses(batch.cell) if like in measured), None)
        if costs is None:
            unknown += len(batch.seeds)
            continue
        place = (batch.cell.hash, batch.mask)
        if place not in prepared:
            seconds += statistics.fmean(cost.prepare for cost in costs)
            prepared.add(place)
        seconds += len(batch.seeds) * _trial_seconds(costs, len(batch.seeds))
    return seconds, unknown


def _likenesses(cell: Cell) -> Iterator[Likeness]:
    """What makes other cells similar to this one, closest first."""
    data, method = cell.data["name"], cell.method["name"]
    yield data, method, cell.missing["name"]
    yield data, method
    yield (data,)


def _measured(store: Store, kind: str | None) -> dict[Likeness, list[Cost]]:
    """The costs of all batches finished on this kind of device, by everything that makes cells similar."""
    measured: dict[Likeness, list[Cost]] = {}
    for cell in store.cells():
        batches = [trial.batch for trial in store.load(cell).values()]
        batches = [batch for batch in batches if kind in (None, _kind_of(batch))]
        trials, facts_of = Counter(batch.path for batch in batches), {b.path: b.facts for b in batches}
        for path, facts in facts_of.items():
            if "train_seconds" in facts:
                # With a model per seed every stack has size one, but the seconds are those of all trials.
                size = max(facts["stack"], trials[path])
                trained = facts["train_seconds"] + facts.get("eval_seconds", 0.0)
                cost = Cost(size, facts.get("prepare_seconds", 0.0), trained / size)
                for like in _likenesses(cell):
                    measured.setdefault(like, []).append(cost)
    return measured


def _kind_of(batch: StoredBatch) -> str:
    return str(batch.provenance.get("device", "cpu")).partition(":")[0]


def _trial_seconds(costs: Sequence[Cost], stack: int) -> float:
    """Mean seconds of a trial in the stacks nearest to this size, by ratio."""
    ratios = [abs(math.log(cost.stack / stack)) for cost in costs]
    nearest = min(ratios)
    return statistics.fmean(cost.trial for cost, ratio in zip(costs, ratios) if ratio == nearest)
