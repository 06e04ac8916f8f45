"""Files are checked before use, written whole or not at all, and sought in every source if missing."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from pagnn_bench.config.errors import RequestError
from pagnn_bench.data import fetch, load_graph, sources
from pagnn_bench.data.files import TABLE, data_root, file_state, read_checked, set_aside, write_data
from pagnn_bench.data.planetoid import _PlanetoidUnpickler


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Touch:
    """Its pickle creates a file when loaded."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


class StubSource:
    """A source with the given contents that records whether it was used."""

    def __init__(self, title: str, contents: dict[str, bytes], broken: bool = False):
        self.title, self.contents, self.broken, self.asked = title, contents, broken, False

    def address(self, path: str) -> str | None:
        return path if path in self.contents else None

    def read(self, addresses):
        self.asked = True
        if self.broken:
            raise sources.SourceError("no route to host")
        yield from (self.contents[address] for address in addresses)


@pytest.fixture
def toy_table(monkeypatch):
    """A dataset ``toy`` with two alternative sets of files: a pair, or another single file."""
    alternatives = [{"a/one": sha256(b"1"), "a/two": sha256(b"2")}, {"b/both": sha256(b"12")}]
    monkeypatch.setitem(TABLE, "toy", {"graph": alternatives})
    return alternatives


def use(monkeypatch, *sources: StubSource) -> None:
    monkeypatch.setattr(fetch, "SOURCES", sources)


def test_the_root_defaults_to_the_cache_folder(monkeypatch, tmp_path):
    assert data_root(tmp_path) == tmp_path
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_root(None) == tmp_path / "pagnn-bench"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data_root(None) == Path.home() / ".cache" / "pagnn-bench"


def test_a_malicious_pickle_is_never_loaded(tmp_path, data_config):
    trap = tmp_path / "trap"
    for path in TABLE["cora"]["graph"][0]:
        write_data(tmp_path / path, pickle.dumps(Touch(trap)))
    with pytest.raises(
        RequestError, match=r"ind\.cora\.x is damaged .*`pagnn-bench data fetch cora --force`"
    ):
        load_graph(data_config("cora", root=str(tmp_path)))
    assert not trap.exists()


def test_the_unpickler_itself_refuses_foreign_classes(tmp_path):
    trap = tmp_path / "trap"
    with pytest.raises(pickle.UnpicklingError, match="mkdir"):
        _PlanetoidUnpickler(io.BytesIO(pickle.dumps(Touch(trap)))).load()
    assert not trap.exists()


def test_states(tmp_path):
    write_data(tmp_path / "file", b"content")
    assert file_state(tmp_path, "file", sha256(b"content")) == "ok"
    assert file_state(tmp_path, "file", sha256(b"other")) == "damaged"
    assert file_state(tmp_path, "absent", sha256(b"content")) == "missing"


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    write_data(tmp_path / "file", b"old")

    def no_space(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", no_space)
    with pytest.raises(RequestError, match="No space left"):
        write_data(tmp_path / "file", b"new")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_set_aside_keeps_the_content(tmp_path):
    write_data(tmp_path / "file", b"odd")
    assert set_aside(tmp_path / "file").read_bytes() == b"odd"
    assert not (tmp_path / "file").exists()


def test_present_files_ask_no_source_and_write_nothing(tmp_path, monkeypatch, toy_table):
    source = StubSource("first", {})
    use(monkeypatch, source)
    write_data(tmp_path / "b/both", b"12")
    assert fetch.obtain(tmp_path, "toy", "graph") == (toy_table[1], None)
    assert not source.asked


def test_only_what_is_missing_is_fetched(tmp_path, monkeypatch, toy_table):
    use(monkeypatch, StubSource("first", {"a/two": b"2"}))
    write_data(tmp_path / "a/one", b"1")
    assert fetch.obtain(tmp_path, "toy", "graph") == (toy_table[0], "first")
    assert read_checked(tmp_path, "toy", toy_table[0]) == {"one": b"1", "two": b"2"}


@pytest.mark.parametrize(
    "first",
    [
        StubSource("first", {"a/one": b"1", "a/two": b"2"}, broken=True),
        StubSource("first", {"b/both": b"21"}),
    ],
)
def test_the_next_source_is_asked_when_one_fails_or_sends_something_else(
    tmp_path, monkeypatch, toy_table, first
):
    use(monkeypatch, first, StubSource("second", {"b/both": b"12"}))
    assert fetch.obtain(tmp_path, "toy", "graph") == (toy_table[1], "second")
    assert first.asked
    assert (tmp_path / "b/both").read_bytes() == b"12"


def test_when_no_source_delivers_one_sentence_says_all(tmp_path, monkeypatch, toy_table):
    use(
        monkeypatch,
        StubSource("first", {"b/both": b""}, broken=True),
        StubSource("second", {"b/both": b"odd"}),
    )
    with pytest.raises(RequestError) as caught:
        fetch.obtain(tmp_path, "toy", "graph")
    message = str(caught.value)
    for words in (
        "data=toy",
        str(tmp_path / "a"),
        str(tmp_path / "b"),
        "first (no route to host)",
        "second (its b/both is a different file",
        "PAGNN_DATA",
        "`pagnn-bench data fetch toy`",
    ):
        assert words in message
    assert "\n" not in message
    assert not (tmp_path / "b").exists()


def test_a_folder_that_cannot_be_made(tmp_path, monkeypatch, toy_table):
    use(monkeypatch, StubSource("first", {"b/both": b"12"}))
    (tmp_path / "file").touch()
    with pytest.raises(RequestError, match="cannot be written to"):
        fetch.obtain(tmp_path / "file", "toy", "graph")


def test_publishers_read_and_fail_as_a_source(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    publishers = sources.Publishers()
    assert list(publishers.read([(tmp_path / "file").as_uri()])) == [b"content"]
    with pytest.raises(sources.SourceError):
        list(publishers.read([(tmp_path / "absent").as_uri()]))


def test_publishers_are_those_of_torch_geometric():
    from torch_geometric.datasets import Amazon, Planetoid

    address = sources.Publishers().address
    assert address("Cora/raw/ind.cora.x") == f"{Planetoid.url}/ind.cora.x"
    assert address("Photo/raw/amazon_electronics_photo.npz") == f"{Amazon.url}amazon_electronics_photo.npz"
    assert address("splits/amaphoto_mask.npz").endswith("/marblet/GCNmf/master/data/amazon/amaphoto_mask.npz")
    assert address("PubMed/raw/ind.pubmed.x") == f"{Planetoid.url}/ind.pubmed.x"
    assert address("Counties/nat_queen.gal").endswith("/libpysal/v4.1.1/libpysal/examples/nat/nat_queen.gal")
    assert address("Houses/house.rda").endswith("/data/house.rda")
    assert address("Cora/linqs/cora.cites") is None
    assert address("Houses/Rdata.rdb") is None


def test_importing_and_loading_need_no_torch():
    code = "import sys, pagnn_bench.data, pagnn_bench.cli.data; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2]).returncode == 0
