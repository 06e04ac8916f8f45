"""A small cell to measure, and documents that nobody measured."""

from __future__ import annotations

from typing import Any

import torch

from pagnn_bench.bench.contenders import MASK
from pagnn_bench.bench.document import new_document
from pagnn_bench.bench.speed import Row
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.sweep import compose_combinations
from pagnn_bench.engine.prepare import MaskedCell, hide_mask

CPU = torch.device("cpu")
SMALL = ("data=synthetic", "data.num_nodes=350", "data.num_features=80", "data.num_val=70", "protocol=quick")

MACHINE = {
    "cpu": "A processor",
    "usable_cores": 2,
    "memory_gb": 8.0,
    "load": 0.1,
    "threads": 2,
    "device": "cpu",
    "packages": {"torch": "2.13.0", "torch_geometric": "2.8.1"},
    "git": {"commit": "0123456789abcdef", "dirty": False},
    "time": "2026-01-02T03:04:05+00:00",
}


def small_cell(method: str, missing: str, *words: str) -> Cell:
    [config] = compose_combinations([*SMALL, f"method={method}", f"missing={missing}", *words])
    return Cell.from_config(config)


def small_masked(method: str, missing: str, *words: str) -> MaskedCell:
    return hide_mask(small_cell(method, missing, *words), MASK, CPU)


def make_row(side: str, seeds: int, ms: list[float], **changes: Any) -> Row:
    """A row whose train step takes three quarters of the time."""
    values: dict[str, Any] = {
        "data": "cora",
        "missing": "type1",
        "rate": 0.5,
        "method": "pagnn_n",
        "label": "PaGNN-N",
        "family": "pagnn",
        "epochs": 10,
        "train_ms": [0.75 * value for value in ms],
        "eval_ms": [0.25 * value for value in ms],
    }
    return Row(side=side, seeds=seeds, **{**values, **changes})


def speed_document(*rows: Row) -> dict[str, Any]:
    settings = {
        "data": ["cora"],
        "missing": ["type1"],
        "rate": 0.5,
        "seeds": [1, 20],
        "epochs": 10,
        "repeats": 3,
    }
    document = new_document("speed", settings, MACHINE)
    names = dict.fromkeys(row.data for row in rows)
    document["places"] = [{"data": name, "label": name.capitalize()} for name in names]
    document["rows"] = [row.record() for row in rows]
    return document
