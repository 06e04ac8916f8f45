"""Damaged result files: named, set aside, never counted, never silently skipped."""

from __future__ import annotations

import errno
import json
import logging
import os
from pathlib import Path

import pytest

from pagnn_bench.config.identity import digest
from pagnn_bench.records.store import Store
from tests.records.common import CELL, OTHER, PROVENANCE, accuracies, ok, save


def reseal(path: Path, **changes: object) -> None:
    """Change a file and give it a right checksum again."""
    body = {**json.loads(path.read_text()), **changes}
    body.pop("sha256")
    path.write_text(json.dumps({**body, "sha256": digest(body)}))


def become_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def become_dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


DAMAGES = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "empty": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(bytes(300)),
    "not UTF-8": lambda path: path.write_bytes(path.read_bytes().replace(b"epoch", b"\xff\xfe")),
    "UTF-16": lambda path: path.write_bytes(path.read_text().encode("utf-16")),
    "a number changed": lambda path: path.write_text(path.read_text().replace("0.5", "0.9", 1)),
    "no checksum": lambda path: path.write_text(path.read_text().replace("sha256", "sha")),
    "a list": lambda path: path.write_text("[1, 2]"),
    "foreign": lambda path: path.write_text('{"accuracy": 0.99}'),
    "nested too deeply": lambda path: path.write_text("[" * 100_000),
    "another cell": lambda path: reseal(path, cell=OTHER.hash),
    "another kind": lambda path: reseal(path, kind="failure"),
    "schema 0": lambda path: reseal(path, schema=0),
    "schema of the wrong type": lambda path: reseal(path, schema="1"),
    "a folder": become_folder,
    "a dangling link": become_dangling_link,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_named_set_aside_and_can_be_rerun(store, damage, caplog):
    save(store, ok(0, 0.1))
    path = save(store, ok(1), ok(2))
    damage(path)
    with caplog.at_level(logging.WARNING):
        assert accuracies(store) == {(0, 0): 0.1}
    assert list(store.damaged) == [path]
    assert path.name in caplog.text
    aside = path.with_name(path.name + ".damaged")
    assert os.path.lexists(aside)
    assert not os.path.lexists(path)
    assert aside.name in store.damaged[path]

    assert store.missing(CELL, [0], range(3)) == {0: [1, 2]}
    assert save(store, ok(1, 0.2), ok(2, 0.3)) == path
    assert accuracies(store) == {(0, 0): 0.1, (0, 1): 0.2, (0, 2): 0.3}
    assert os.path.lexists(aside), "the evidence stays"


def test_damage_never_covers_earlier_damage(store):
    for content in ("first", "second", "third"):
        path = save(store, ok(0))
        path.write_text(content)
        assert store.load(CELL) == {}
    assert sorted(file.read_text() for file in path.parent.glob("*.damaged*")) == ["first", "second", "third"]


def test_a_damaged_failure_note_is_set_aside_too(store):
    path = store.save_failure(CELL, 0, [0], "boom", "", PROVENANCE)
    path.write_text("{")
    assert store.failures(CELL) == []
    assert list(store.damaged) == [path]
    assert not path.exists()


def test_a_file_of_a_newer_schema_is_named_and_left_alone(store):
    path = save(store, ok(0))
    path.write_text(text := '{"schema": 2, "sealed": "in a way not known yet"}')
    assert store.load(CELL) == {}
    assert "schema 2" in store.damaged[path]
    assert path.read_text() == text


def test_a_file_that_cannot_be_read_now_is_named_and_left_alone(store, monkeypatch):
    path = save(store, ok(0))
    with monkeypatch.context() as patch:

        def fail(self):
            raise OSError(errno.EIO, "Input/output error")

        patch.setattr(Path, "read_bytes", fail)
        assert store.load(CELL) == {}
    assert "Input/output error" in store.damaged[path]
    assert accuracies(store) == {(0, 0): 0.5}


def test_a_file_mended_while_it_is_set_aside_is_counted(store, monkeypatch):
    """A writer replaces the damaged file just before the reader renames it: the good file must survive."""
    path = save(store, ok(0))
    path.write_text("damaged")
    rename = os.rename

    def mend_then_rename(source, target):
        save(Store(store.cells_dir.parent), ok(0, 0.75))
        rename(source, target)

    monkeypatch.setattr(os, "rename", mend_then_rename)
    assert accuracies(store) == {(0, 0): 0.75}
    assert path.exists()
    assert not store.damaged


def test_a_file_that_vanishes_while_reading_is_no_damage(store, monkeypatch):
    path = save(store, ok(0))
    names = [path.name, "mask9-seeds9-00000000.json"]
    monkeypatch.setattr(os, "listdir", lambda folder: names)
    assert list(store.load(CELL)) == [(0, 0)]
    assert not store.damaged


def test_a_damaged_description_hides_no_cell_silently_and_comes_back(store):
    path = save(store, ok(0)).with_name("cell.json")
    path.write_text("{}")
    assert list(store.cells()) == []
    assert set(store.damaged) == {path, path.parent}
    assert store.missing(CELL, [0], [0]) == {}
    assert [cell.id for cell in store.cells()] == [CELL.id]


def test_a_renamed_folder_is_named_and_not_counted(store):
    folder = save(store, ok(0)).parent
    moved = folder.rename(folder.with_name("best-results"))
    assert list(store.cells()) == []
    assert CELL.id in store.damaged[moved]
