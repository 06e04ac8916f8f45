"""Whole trials of Cora, trained again on a device and compared with the committed accuracies."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from pagnn_bench.check.cases import compose
from pagnn_bench.check.words import host_drawn
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.text import count
from pagnn_bench.data.files import TABLE, data_root, file_state
from pagnn_bench.engine.execute import Executor
from pagnn_bench.records.store import Store, Trial

CHOSEN = (("pagnn_n", "type1"), ("pagnn_m", "type2"), ("mf", "type1"), ("gcnmf", "type1"))
RATE, PROTOCOL, MASK = 0.5, "paper", 0
LARGEST_STACK = 20

# If rounding makes a trial stop at another epoch, its accuracy changes like that of another seed, by 0.7 points
# (README). So in the worst case two means of n trials differ by 0.7 √(2/n). Four times that does not happen by chance.
SPREAD = 0.7
CHANCE = 4


@dataclass(frozen=True)
class Known:
    """Trials with known accuracies on a CPU.

    Attributes:
        cell, mask, seeds: which trials; they train as one stack.
        accuracies: test accuracies in percent, in the order of ``seeds``.
        threads: CPU threads that trained them.
    """

    cell: Cell
    mask: int
    seeds: list[int]
    accuracies: list[float]
    threads: int


def whole_batches(trials: Iterable[Trial], stack: int) -> list[list[Trial]]:
    """The batches of at most ``stack`` seeds in which every trial succeeded and none was superseded."""
    batches: dict[Path, list[Trial]] = {}
    for trial in trials:
        if trial.ok:
            batches.setdefault(trial.batch.path, []).append(trial)
    return [batch for batch in batches.values() if len(batch) == batch[0].batch.facts["stack"] <= stack]


def known_batch(cell: Cell, trials: list[Trial]) -> Known:
    """A recorded batch, on the data of this machine."""
    batch, here = trials[0].batch, {**cell.data, "root": os.environ.get("PAGNN_DATA")}
    accuracies = [100 * trial.record["test_acc"] for trial in trials]
    seeds, threads = [trial.seed for trial in trials], batch.provenance["threads"]
    return Known(dataclasses.replace(cell, data=here), batch.mask, seeds, accuracies, threads)


def committed(results: Path) -> list[Known]:
    """The largest recorded batch of each chosen cell; none without Cora or the records."""
    if not _has_cora():
        return []
    store, found = Store(results), []
    cells = [cell for cell in store.cells() if cell.data["name"] == "cora" and cell.rate == RATE]
    for place in CHOSEN:
        own = [
            (cell, batch)
            for cell in cells
            if (cell.method["name"], cell.missing["name"]) == place and cell.protocol["name"] == PROTOCOL
            for batch in whole_batches(store.load(cell).values(), LARGEST_STACK)
        ]
        if own:
            found.append(known_batch(*max(own, key=lambda pair: (len(pair[1]), -pair[1][0].mask))))
    return found


def made_here(method: str, missing: str, threads: int) -> Known:
    """The trials of a cell on the built-in graph, trained on this machine's CPU."""
    cell, seeds = compose(f"method={method}", f"missing={missing}", "protocol=paper"), list(range(5))
    outcome = Executor(torch.device("cpu"), threads).run(cell, MASK, seeds)
    return Known(cell, MASK, seeds, [100 * record["test_acc"] for record in outcome.records], threads)


def again(known: Known, device: torch.device) -> list[dict[str, Any]]:
    """The records of the same trials, trained on a device with the CPU's random numbers."""
    with host_drawn():
        return Executor(device, known.threads).run(known.cell, known.mask, known.seeds).records


def comparison(known: Known, records: list[dict[str, Any]]) -> dict[str, Any]:
    """The accuracies of both devices in percent, and faults if their means differ too much."""
    found = [100 * record["test_acc"] for record in records if record["status"] == "ok"]
    limit = CHANCE * SPREAD * math.sqrt(2 / len(records))
    apart = fmean(found) - fmean(known.accuracies) if found else math.nan
    faults = []
    if diverged := len(records) - len(found):
        faults.append(f"{count(diverged, 'trial')} diverged, but none on the CPU")
    elif abs(apart) > limit:
        faults.append(f"the mean differs by {apart:+.2f} points (at most {limit:.2f})")
    cell = known.cell
    return {
        "label": str(cell.method.get("label", cell.method["name"])),
        "data": cell.data["name"],
        "missing": cell.missing["name"],
        "rate": cell.rate,
        "trials": len(records),
        "cpu": known.accuracies,
        "device": found,
        "limit": limit,
        "faults": faults,
    }


def _has_cora() -> bool:
    root = data_root(os.environ.get("PAGNN_DATA"))
    return any(
        all(file_state(root, path, sha) == "ok" for path, sha in files.items())
        for files in TABLE["cora"]["graph"]
    )
