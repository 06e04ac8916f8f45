"""Results that nobody trained, for tests of the reading side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from omegaconf import OmegaConf

from pagnn_bench.analysis.paper import paper_entries
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.variants import _file, _packaged
from pagnn_bench.records.store import Store

PROVENANCE = {
    "version": "0.1.0",
    "python": "3.11.7",
    "packages": {"torch": "2.13.0", "numpy": "2.4.6"},
    "platform": {"system": "Linux", "machine": "x86_64", "cpus": 2},
    "git": {"commit": "0123456789abcdef0123456789abcdef01234567", "dirty": False},
    "time": "2026-01-02T03:04:05+00:00",
    "device": "cpu",
    "threads": 1,
    "data_checksum": "c" * 64,
}

GPU = {"name": "NVIDIA T4", "driver": "550.54.14", "cuda": "12.4", "cudnn": 90100, "tf32": False}
ON_GPU = {**PROVENANCE, "device": "cuda:0", "gpu": GPU}

TWO_STAGE = ("zero", "mf", "vae", "gain", "sat")
EPOCH_MS = {"mf": 4.0, "pagnn_m": 4.4, "pagnn_n": 4.6, "vae": 9.0, "gain": 12.0, "sat": 20.0, "gcnmf": 90.0}


def make_cell(
    method: str = "pagnn_n",
    data: str = "cora",
    missing: str = "type1",
    rate: float = 0.5,
    protocol: str = "paper",
    **changed: dict[str, Any],
) -> Cell:
    """A cell with the packaged settings, changed by ``method_={...}``, ``data_={...}`` and so on."""
    names = {"method": method, "data": data, "missing": missing, "protocol": protocol}
    groups = {
        group: _packaged(group, name) or {"name": name, "split": "random"} for group, name in names.items()
    }
    recommended = _file("data", data).get("recommended", {"hidden": 16, "weight_decay": 0.005})
    groups["data"] = {**groups["data"], "recommended": recommended}
    for group in groups:
        groups[group] = {**groups[group], "name": names[group], **changed.get(f"{group}_", {})}
    if not _packaged("protocol", protocol):  # of an experiment
        groups["protocol"] = {**_packaged("protocol", "shared"), **groups["protocol"]}
    groups["data"].pop("root", None)
    resolved: Any = OmegaConf.to_container(OmegaConf.create({**groups, "rate": rate}), resolve=True)
    return Cell(**resolved)


def save_trials(
    store: Store,
    cell: Cell,
    accuracy: Callable[[int, int], float],
    masks: Iterable[int] = range(5),
    seeds: Iterable[int] = range(4),
    stack: int | None = None,
    epochs: int = 300,
    curve: bool = False,
    provenance: dict[str, Any] = PROVENANCE,
    of_mask: Callable[[int], dict[str, Any]] = lambda mask: {},
) -> None:
    """Record trials with ``accuracy(mask, seed)`` in percent, and ``of_mask(mask)`` as facts of the mask."""
    seeds = list(seeds)
    stack = stack or len(seeds)
    for mask in masks:
        for first in range(0, len(seeds), stack):
            chunk = seeds[first : first + stack]
            records = [
                {
                    "seed": seed,
                    "status": "ok",
                    "test_acc": round(accuracy(mask, seed) / 100, 4),
                    "val_acc": 0.7,
                    "val_loss": 0.9,
                    "best_epoch": epochs - 100,
                    "epochs": epochs,
                    **({"curve": [2.0 * 0.99**k + 0.1 for k in range(epochs)]} if curve else {}),
                }
                for seed in chunk
            ]
            name = cell.method["name"]
            ms = EPOCH_MS.get(name, 5.0) * (1 + 0.02 * (mask + first))
            facts = {
                "stack": len(chunk),
                "train_seconds": ms * epochs * len(chunk) / 1000,
                "eval_seconds": 0.1,
                "prepare_seconds": 0.3,
                "seed_epochs": epochs * len(chunk),
                **of_mask(mask),
            }
            if name in TWO_STAGE:
                facts["impute_rmse"] = 0.1
            store.save(cell, mask, records, facts, provenance)


def like_the_paper(cell: Cell, shift: float = 0.0, spread: float = 0.4) -> Callable[[int, int], float]:
    """Accuracies around the paper's entry (around 50 where it has none), the masks common to all methods."""
    name = cell.method["name"]
    entry = paper_entries().get((cell.missing["name"], cell.data["name"], name, cell.rate))
    centre = entry.accuracy if entry else 50.0
    own = sum(map(ord, name))

    def accuracy(mask: int, seed: int) -> float:
        of_mask = np.random.default_rng([mask, int(100 * cell.rate)]).normal(0, spread)
        of_trial = np.random.default_rng([mask, seed, own]).normal(0, spread)
        return float(np.clip(centre + shift + of_mask + of_trial, 0, 100))

    return accuracy
