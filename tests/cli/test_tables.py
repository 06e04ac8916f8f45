"""``pagnn-bench tables`` with few, no or damaged results."""

from __future__ import annotations

import json

import pytest

from pagnn_bench.cli import main
from tests.analysis.tables.reading import fill, tables
from tests.fabricate import PROVENANCE, make_cell
from tests.imports import answer_without


def test_nothing_run_yet(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["tables"]) == 0
    assert capsys.readouterr().out.startswith("Nothing has been run yet")
    assert main(["tables", "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 260
    for format_ in ("latex", "html", "csv"):
        assert main(["tables", "--table", "2", "--format", format_, "--compare", "paper"]) == 0
        assert "81.78" in capsys.readouterr().out


def test_only_failures(store, capsys):
    store.save_failure(make_cell(), 0, [0], "ValueError: no", "Traceback", PROVENANCE)
    text = tables(store, capsys)
    assert "failed" in text
    assert "1 cell with failed batches" in text


def test_a_damaged_file_is_counted(store, capsys):
    fill(store)
    next(store.cells_dir.glob("*/mask0*.json")).write_text("{", encoding="utf-8")
    assert "1 file could not be read" in tables(store, capsys)


def test_writing_to_a_file(store, tmp_path, capsys):
    fill(store)
    path = tmp_path / "table.md"
    tables(store, capsys, "-o", str(path))
    assert path.read_text(encoding="utf-8") == tables(store, capsys)
    arguments = ["tables", "--results", str(store.cells_dir.parent), "-o", str(tmp_path / "no" / "x.md")]
    assert main(arguments) == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--table", "9"], ["--results", "/no/such"], ["--what"]])
def test_a_wrong_request_is_one_sentence(arguments, capsys):
    assert main(["tables", *arguments]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_the_table_of_datasets_without_data_at_hand(store, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PAGNN_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["tables", "--table", "data"]) == 0
    text = capsys.readouterr().out
    assert "143663" in text
    assert "Not available here: Cora" in text


def test_reading_needs_no_torch(store):
    fill(store)
    done = answer_without(
        {"torch", "torch_geometric", "hydra"}, ["tables", "--results", str(store.cells_dir.parent)]
    )
    assert done.returncode == 0, done.stderr
