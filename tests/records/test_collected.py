"""The collected tables: nothing lost, stable bytes, read like the files they came from."""

from __future__ import annotations

import csv
import dataclasses
import errno
import json
import os
import shutil

import pytest

from pagnn_bench.cli import main
from pagnn_bench.records.store import Store
from tests.records.common import CELL, failed, ok, save


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


def trials_of(results_dir) -> set[tuple[int, int]]:
    return set(Store(results_dir).load(CELL))


def test_a_writer_that_is_killed_between_its_two_files_loses_nothing(filled, monkeypatch):
    """Killed before the description, after it, and before it again, each time with a trial more."""
    filled.collect()
    shutil.rmtree(filled.cells_dir)
    counted, rename = trials_of(filled.results_dir), os.replace

    def die(*arguments, **keys):
        raise KeyboardInterrupt

    def die_at_the_rows(source, target):
        return die() if str(source).endswith(".next") else rename(source, target)

    deaths = {7: ("pagnn_bench.records.collected.write_sealed", die), 8: ("os.replace", die_at_the_rows)}
    for seed, (where, death) in {**deaths, 9: deaths[7]}.items():
        store = Store(filled.results_dir)
        save(store, ok(seed), mask=2)
        with monkeypatch.context() as patch:
            patch.setattr(where, death)
            with pytest.raises(KeyboardInterrupt):
                store.collect()
        shutil.rmtree(filled.cells_dir)
        counted |= {(2, 8)} if seed == 8 else set()
        assert trials_of(filled.results_dir) == counted
        assert not Store(filled.results_dir).damaged
    Store(filled.results_dir).collect()
    assert trials_of(filled.results_dir) == counted
    assert not list(filled.results_dir.glob("collected/*.next"))


@pytest.mark.parametrize(
    "harm", ["rows changed", "rows lost", "description cut", "description lost", "newer"]
)
def test_collecting_never_overwrites_a_table_that_it_could_not_read(filled, harm, capsys):
    table = filled.collect()[0]
    description = table.with_suffix(".json")
    shutil.rmtree(filled.cells_dir)
    if harm == "rows changed":
        table.write_bytes(table.read_bytes().replace(b"\n", b"\r\n"))
    elif harm == "rows lost":
        table.unlink()
    elif harm == "description cut":
        description.write_text(description.read_text()[:-100])
    elif harm == "description lost":
        description.unlink()
    else:
        description.write_text(description.read_text().replace('"schema": 1', '"schema": 99'))
    save(Store(filled.results_dir), ok(7), mask=2)
    kept = {path.name: path.read_bytes() for path in (table, description) if path.exists()}
    for _ in range(2):  # a damaged description is set aside: then, too, its rows must stay
        assert main(["collect", "--results", str(filled.results_dir)]) == 2
        [sentence] = [
            line for line in capsys.readouterr().err.splitlines() if line.startswith("pagnn-bench:")
        ]
        assert "could not be read, and trials that are only there would be lost" in sentence
        for name, content in kept.items():
            if name != description.name or harm != "description cut":
                assert (table.parent / name).read_bytes() == content


def test_a_table_that_cannot_be_written_is_a_sentence(filled, monkeypatch, capsys):
    def full(*arguments, **keys):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert main(["collect", "--results", str(filled.results_dir)]) == 1
    assert "No space left on device" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_refused(tmp_path, capsys):
    assert main(["collect", "--results", str(tmp_path / "nothing")]) == 2
    assert "there is no such folder" in capsys.readouterr().err


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
