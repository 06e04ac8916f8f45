"""A cell, records and helpers that all tests of the store share."""

from __future__ import annotations

from pathlib import Path

from pagnn_bench.config.identity import Cell
from pagnn_bench.records.store import Store

CONFIG = {
    "method": {"name": "pagnn_n", "hidden": 16},
    "data": {"name": "tiny", "root": "/somewhere/on/this/machine", "label": "Tiny"},
    "missing": {"name": "type1"},
    "protocol": {"name": "paper", "epochs": 10, "lr": 0.01},
    "rate": 0.5,
}
CELL = Cell(**CONFIG)
OTHER = Cell(**{**CONFIG, "rate": 0.7})
PROVENANCE = {"version": "0.1.0", "device": "cpu"}


def ok(seed: int, accuracy: float = 0.5) -> dict:
    return {"seed": seed, "status": "ok", "test_acc": accuracy, "best_epoch": 7, "curve": [0.1, 0.2]}


def failed(seed: int) -> dict:
    return {"seed": seed, "status": "failed", "reason": "the loss is NaN at epoch 3"}


def save(store: Store, *records: dict, mask: int = 0, generation: int = 0, cell: Cell = CELL) -> Path:
    return store.save(cell, mask, list(records), {"seconds": 1.5}, PROVENANCE, generation)


def accuracies(store: Store, cell: Cell = CELL) -> dict[tuple[int, int], float]:
    return {key: trial.record["test_acc"] for key, trial in store.load(cell).items() if trial.ok}


def leftovers(store: Store) -> list[str]:
    return [path.name for path in store.cells_dir.rglob("*.tmp")]
