"""The collected tables: nothing lost, stable bytes, read like the files they came from."""

from __future__ import annotations

import csv
import dataclasses
import json
import shutil

import pytest

from pagnn_bench.store import Store
from tests.store.common import CELL, failed, ok, save


@pytest.fixture
def filled(store: Store) -> Store:
    other = dataclasses.replace(CELL, rate=0.9)
    elsewhere = dataclasses.replace(CELL, missing={**CELL.missing, "name": "type2"})
    save(store, ok(0, 0.1 + 0.2), ok(1, 1 / 3), mask=1)
    save(store, failed(2), {**ok(3), "curve": [1.5, None, 0.25]}, mask=1)
    save(store, ok(0, 0.75), mask=1, generation=1)
    save(store, ok(0), cell=other)
    save(store, ok(5), cell=elsewhere)
    return store


def everything(store: Store) -> dict:
    return {
        cell.id: {
            key: (trial.record, dataclasses.replace(trial.batch)) for key, trial in store.load(cell).items()
        }
        for cell in store.cells()
    }


def test_nothing_is_lost(filled):
    before = everything(filled)
    assert len(before) == 3
    tables = filled.collect()
    assert [table.name for table in tables] == ["tiny-type1.csv", "tiny-type2.csv"]
    shutil.rmtree(filled.cells_dir)
    again = Store(filled.results_dir)
    assert everything(again) == before
    assert again.next_generation(CELL) == 2
    assert again.missing(CELL, [1], [0, 1, 2, 3]) == {1: [2]}
    assert not filled.cells_dir.exists()  # reading committed results writes nothing


def test_files_and_tables_together(filled):
    """Trials that came after the last collection count too, and a batch that is in both counts once."""
    filled.collect()
    save(filled, ok(7), mask=2)
    again = Store(filled.results_dir)
    assert set(again.load(CELL)) == {(1, 0), (1, 1), (1, 2), (1, 3), (2, 7)}
    again.collect()
    shutil.rmtree(filled.cells_dir)
    assert set(Store(filled.results_dir).load(CELL)) == {(1, 0), (1, 1), (1, 2), (1, 3), (2, 7)}


def test_the_bytes_are_stable(filled):
    def content() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (filled.results_dir / "collected").iterdir()}

    filled.collect()
    first = content()
    Store(filled.results_dir).collect()
    assert content() == first
    shutil.rmtree(filled.cells_dir)
    Store(filled.results_dir).collect()
    assert content() == first


def test_a_configuration_that_cells_share_is_written_once(filled):
    table = filled.collect()[0]
    text = table.with_suffix(".json").read_text()
    assert text.count(f'"{CELL.method["name"]}"') == 1
    assert len(json.loads(text)["cells"]) == 2


def test_the_table_is_for_people(filled):
    table = filled.collect()[0]
    rows = list(csv.DictReader(table.open()))
    assert [(row["mask"], row["seed"], row["status"]) for row in rows if row["cell"] == CELL.id] == [
        ("1", "0", "ok"),
        ("1", "0", "ok"),
        ("1", "1", "ok"),
        ("1", "2", "failed"),
        ("1", "3", "ok"),
    ]
    assert {float(row["test_acc"]) for row in rows if row["seed"] == "1"} == {1 / 3}


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_a_table_that_was_changed_is_named_and_not_counted(filled, suffix, caplog):
    table = filled.collect()[0].with_suffix(f".{suffix}")
    shutil.rmtree(filled.cells_dir)
    table.write_text(table.read_text().replace("0.75", "0.95").replace(": 1,", ": 2,"))
    again = Store(filled.results_dir)
    assert again.load(CELL) == {}
    assert any(path.name == table.name for path in again.damaged)
    assert table.name in caplog.text


def test_a_lost_table_is_named(filled):
    filled.collect()[0].unlink()
    shutil.rmtree(filled.cells_dir)
    again = Store(filled.results_dir)
    assert again.load(CELL) == {}
    assert [path.name for path in again.damaged] == ["tiny-type1.csv"]
