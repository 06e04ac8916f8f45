"""Every test of the command line runs in an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from pagnn_bench.records.store import Store


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")
