"""The interface of file sources, and the first one: the publishers' own sites."""

from __future__ import annotations

import http.client
import urllib.request
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Protocol

CONNECT_SECONDS = 10

# Subfolder of the data folder → where its files are published.
_GITHUB = "https://raw.githubusercontent.com"
PUBLISHED = {
    "splits": f"{_GITHUB}/marblet/GCNmf/master/data/amazon",
    "Counties": f"{_GITHUB}/pysal/libpysal/v4.1.1/libpysal/examples/nat",
    "Houses": f"{_GITHUB}/Nowosad/spData/10024508ea0d92b83c2f8d51adebc22cae61bf0e/data",
}
# Forms of a dataset that are only in packages.
ELSEWHERE = ("Cora/linqs/", "Houses/Rdata.")


class SourceError(Exception):
    """This source cannot deliver; the next may."""


class Source(Protocol):
    """A place that has some of the files."""

    title: str

    def address(self, path: str) -> str | None:
        """The source's address of ``path`` in the data folder; None if it has no such file."""

    def read(self, addresses: list[str]) -> Iterator[bytes]:
        """The contents, one by one; raises :class:`SourceError`."""


class Publishers:
    """The addresses that torch_geometric uses, and the repositories of GCNmf, libpysal and spData."""

    title = "the publishers' sites"

    def address(self, path: str) -> str | None:
        if path.startswith(ELSEWHERE):
            return None
        folder, _, file = path.partition("/")
        if folder in PUBLISHED:
            return f"{PUBLISHED[folder]}/{file}"
        # Takes seconds, so only when something is missing.
        from torch_geometric.datasets import Amazon, Planetoid

        file = PurePosixPath(path).name
        base = Planetoid.url if file.startswith("ind.") else Amazon.url
        return f"{base.rstrip('/')}/{file}"

    def read(self, addresses: list[str]) -> Iterator[bytes]:
        yield from map(download, addresses)


def download(url: str) -> bytes:
    """The content of an address; raises :class:`SourceError`."""
    try:
        with urllib.request.urlopen(url, timeout=CONNECT_SECONDS) as response:
            content: bytes = response.read()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise SourceError(getattr(error, "reason", error)) from error
    return content
