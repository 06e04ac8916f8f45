"""``pagnn-bench data``: its output, effects and exit codes."""

from __future__ import annotations

import shutil

import pytest

from pagnn_bench.cli.data import data_command
from pagnn_bench.config.errors import RequestError
from pagnn_bench.data import fetch
from pagnn_bench.data.files import TABLE

pytest.importorskip("pagnn_bench.conf", reason="the package is not installed (pip install -e .)")


@pytest.fixture
def no_sources(monkeypatch):
    monkeypatch.setattr(fetch, "SOURCES", ())


@pytest.fixture
def citeseer(real_root, tmp_path):
    """A folder with only Citeseer."""
    shutil.copytree(
        real_root / "Citeseer" / "raw", tmp_path / "Citeseer" / "raw", copy_function=shutil.copyfile
    )
    return tmp_path


def test_list_with_nothing_fetched(tmp_path, capsys):
    assert data_command(["list", "--root", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    for words in ("5,429", "287,209", "not fetched: pagnn-bench data fetch amacomp", str(tmp_path)):
        assert words in out


def test_the_folder_comes_from_the_environment(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PAGNN_DATA", str(tmp_path / "mine"))
    assert data_command(["list", "cora"]) == 0
    assert str(tmp_path / "mine") in capsys.readouterr().out


def test_verify_with_nothing_fetched(tmp_path, capsys):
    assert data_command(["verify", "cora", "--root", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert all(line.startswith("missing ") and "ind.cora." in line for line in lines)


def test_fetch_wants_a_name(capsys, no_sources):
    with pytest.raises(RequestError, match="NAME"):
        data_command(["fetch"])


def test_fetch_without_a_source_says_so_for_each(tmp_path, capsys, no_sources):
    assert data_command(["fetch", "all", "--root", str(tmp_path)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == len(TABLE)


def test_unknown_name(tmp_path):
    with pytest.raises(
        RequestError,
        match="NAME=reddit: choose from cora, citeseer, pubmed, amaphoto, amacomp, counties, houses, all",
    ):
        data_command(["fetch", "reddit", "--root", str(tmp_path)])


@pytest.mark.real_data
def test_list_and_verify_with_real_files(real_root, capsys):
    assert data_command(["list", "--root", str(real_root)]) == 0
    out = capsys.readouterr().out
    for words in ("5,278", "4,552", "119,081", "245,861", "400/500/12852"):
        assert words in out
    for name in ("cora", "citeseer", "amaphoto", "amacomp"):
        assert data_command(["verify", name, "--root", str(real_root)]) == 0


@pytest.mark.real_data
def test_a_damaged_file_is_reported_and_replaced_by_force(citeseer, capsys, monkeypatch):
    path, *_ = TABLE["citeseer"]["graph"][0]
    good = (citeseer / path).read_bytes()
    (citeseer / path).write_bytes(b"odd")
    root = ["--root", str(citeseer)]

    assert data_command(["verify", "citeseer", *root]) == 1
    assert capsys.readouterr().out.count("damaged ") == 1
    assert data_command(["list", "citeseer", *root]) == 0
    assert "damaged: pagnn-bench data fetch citeseer --force" in capsys.readouterr().out
    assert data_command(["fetch", "citeseer", *root]) == 1
    assert "is damaged" in capsys.readouterr().err

    class Good:
        title = "a good source"

        def address(self, path):
            return path

        def read(self, addresses):
            assert addresses == [path]
            yield good

    monkeypatch.setattr(fetch, "SOURCES", (Good(),))
    assert data_command(["fetch", "citeseer", "--force", *root]) == 0
    out = capsys.readouterr().out
    assert f"set aside as {citeseer / path}.damaged" in out
    assert "fetched from a good source" in out
    assert data_command(["verify", "citeseer", *root]) == 0
    assert data_command(["fetch", "citeseer", *root]) == 0
    assert "already in" in capsys.readouterr().out
