"""How long whole experiments take in one process on this machine, from the cells that were measured.

seconds of a cell = masks x preparation + trials x epochs per trial x seconds per seed-epoch
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pagnn_bench.bench.speed import OURS, Row
from pagnn_bench.config.identity import Cell
from pagnn_bench.engine.plan import Request
from pagnn_bench.records.batch import StoredBatch as Batch
from pagnn_bench.records.store import Store

STACK = 20  # seeds trained at once, as `run` does by default


@dataclass(frozen=True)
class Known:
    """What was measured of one cell.

    Attributes:
        cell: which.
        epochs: mean number of epochs of a trial.
        seed_epoch_ms: milliseconds of one epoch of one seed, evaluation included, in stacks as they ran: median over
            the batches, since now and then a batch runs beside something else.
        prepare_seconds: of one mask, median over the masks.
        threads: of the processes that trained it.
    """

    cell: Cell
    epochs: float
    seed_epoch_ms: float
    prepare_seconds: float
    threads: frozenset[int]


def read_known(store: Store) -> list[Known]:
    """All cells of a results folder whose time was recorded."""
    known = []
    for cell in store.cells():
        trials = [trial for trial in store.load(cell).values() if trial.ok]
        batches = {trial.batch.path: trial.batch for trial in trials}.values()
        timed = [batch for batch in batches if batch.facts.get("seed_epochs")]
        if not timed:
            continue
        # Batches of one mask share their preparation, and each of them records it.
        prepared: dict[int, float] = {}
        for batch in timed:
            seconds = batch.facts.get("prepare_seconds", 0.0)
            prepared[batch.mask] = max(seconds, prepared.get(batch.mask, 0.0))
        known.append(
            Known(
                cell,
                statistics.fmean(trial.record["epochs"] for trial in trials),
                statistics.median(map(_seed_epoch_ms, timed)),
                statistics.median(prepared.values()),
                frozenset(b.provenance["threads"] for b in timed if b.provenance.get("threads")),
            )
        )
    return known


def _seed_epoch_ms(batch: Batch) -> float:
    facts = batch.facts
    return 1000 * (facts["train_seconds"] + facts["eval_seconds"]) / facts["seed_epochs"]


def nearest(cell: Cell, known: Iterable[Known]) -> tuple[Known, str] | None:
    """The measured cell that tells most about this one, and how near it is; None if there is none.

    The same cell; else the nearest rate of the same method, data, missing type and protocol; else another missing type.
    """
    same = [item for item in known if _names(item.cell) == _names(cell)]
    for item in same:
        if item.cell.hash == cell.hash:
            return item, "measured"
    by_rate = sorted(same, key=lambda item: abs(item.cell.rate - cell.rate))
    for item in by_rate:
        if item.cell.missing["name"] == cell.missing["name"]:
            return item, "another rate"
    return (by_rate[0], "another type") if by_rate else None


def _names(cell: Cell) -> tuple[str, ...]:
    return cell.method["name"], cell.data["name"], cell.protocol["name"]


def with_speed(
    cell: Cell, found: tuple[Known, str] | None, rows: Iterable[Row], known: Sequence[Known]
) -> tuple[Known, str] | None:
    """The same with the speed of a ``bench`` document, where that has the method on this data and missing type."""
    place = (cell.method["name"], cell.data["name"], cell.missing["name"])
    own = [row for row in rows if row.side == OURS and (row.method, row.data, row.missing) == place]
    own = [row for row in own if row.seeds <= STACK]
    if not own:
        return found
    row = max(own, key=lambda row: row.seeds)
    if found is None:
        here = [item.epochs for item in known if _names(item.cell)[1:] == _names(cell)[1:]]
        if not here:
            return None
        # Nobody knows how long this method trains: as long as the others on this data.
        found = (Known(cell, statistics.fmean(here), 0.0, 0.0, frozenset()), "epochs of others")
    prepare = found[0].prepare_seconds if row.prepare_seconds is None else row.prepare_seconds
    return replace(found[0], seed_epoch_ms=row.ms, prepare_seconds=prepare), found[1]


def estimate(
    experiment: str, requests: Iterable[Request], known: Sequence[Known], rows: Sequence[Row] = ()
) -> list[dict[str, Any]]:
    """One entry per cell of an experiment; ``seconds`` is None where nothing is known.

    Args:
        experiment: its name.
        requests: its cells and trials.
        known: what a results folder tells.
        rows: of a ``bench`` document: their speed counts in place of that of the results folder.
    """
    entries = []
    for request in requests:
        cell = request.cell
        found = with_speed(cell, nearest(cell, known), rows, known)
        masks, trials = len({mask for mask, _ in request.trials}), len(request.trials)
        seconds = None
        if found is not None:
            item = found[0]
            seconds = masks * item.prepare_seconds + trials * item.epochs * item.seed_epoch_ms / 1000
        entries.append(
            {
                "experiment": experiment,
                "method": cell.method["name"],
                "label": str(cell.method.get("label", cell.method["name"])),
                "data": cell.data["name"],
                "data_label": str(cell.data.get("label", cell.data["name"])),
                "missing": cell.missing["name"],
                "rate": cell.rate,
                "masks": masks,
                "trials": trials,
                "seconds": None if seconds is None else round(seconds, 2),
                "from": None if found is None else found[1],
                "threads": [] if found is None else sorted(found[0].threads),
            }
        )
    return entries
