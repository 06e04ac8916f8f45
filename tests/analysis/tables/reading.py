"""Fabricated results, and what ``pagnn-bench tables`` says about them."""

from __future__ import annotations

import json

from pagnn_bench.cli import main
from pagnn_bench.records.store import Store
from tests.fabricate import like_the_paper, make_cell, save_trials


def tables(store: Store, capsys, *arguments: str) -> str:
    capsys.readouterr()
    assert main(["tables", "--results", str(store.cells_dir.parent), *arguments]) == 0
    return capsys.readouterr().out


def records(store: Store, capsys, *arguments: str) -> list[dict]:
    return json.loads(tables(store, capsys, "--format", "json", *arguments))


def fill(store: Store, method: str = "pagnn_n", value: float | None = None, **where) -> None:
    """A cell of two masks with two seeds each, around ``value`` or the paper's number."""
    cell = make_cell(method, **where)
    exact = like_the_paper(cell) if value is None else lambda mask, seed: value + mask + seed / 2
    save_trials(store, cell, exact, masks=range(2), seeds=range(2))
