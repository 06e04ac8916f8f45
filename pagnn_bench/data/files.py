"""The data folder: where it is, which files belong in it, and reading and writing them by checksum.

``checksums.json`` lists, for every dataset and part, the alternative sets of files and the SHA-256 of each file. The
folder has the layout of torch_geometric, so a folder that its loaders have filled works as well.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from pagnn_bench.config.atomic import write_atomically
from pagnn_bench.config.errors import RequestError

Files = dict[str, str]  # path inside the data folder -> SHA-256 of the content

# dataset -> part -> alternatives, the preferred one first
TABLE: Mapping[str, Mapping[str, list[Files]]] = json.loads(
    resources.files("pagnn_bench.data").joinpath("checksums.json").read_text("utf-8")
)


def data_root(root: str | os.PathLike[str] | None) -> Path:
    """The folder named by ``data.root``; by default, the user's cache folder."""
    if root:
        return Path(str(root)).expanduser()  # str: YAML reads a folder named 2024 as a number
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "pagnn-bench"


def file_state(root: Path, path: str, sha256: str) -> str:
    """``ok``, ``missing``, ``unreadable`` or ``damaged``."""
    file = root / path
    try:
        if not file.is_file():  # an OSError if the folder is not readable
            return "missing"
        content = file.read_bytes()
    except OSError:
        return "unreadable"
    return "ok" if hashlib.sha256(content).hexdigest() == sha256 else "damaged"


def read_checked(root: Path, name: str, files: Files) -> dict[str, bytes]:
    """The contents of ``files``, by file name, after checking their SHA-256.

    Raises:
        RequestError: a file cannot be read or is not the published one.
    """
    contents = {}
    for path, sha256 in files.items():
        file = root / path
        try:
            content = file.read_bytes()
        except OSError as error:
            raise RequestError(f"data={name}: {file} cannot be read ({error.strerror}).") from error
        if hashlib.sha256(content).hexdigest() != sha256:
            raise RequestError(
                f"data={name}: {file} is damaged (its SHA-256 is not the published one); "
                f"`pagnn-bench data fetch {name} --force` fetches it again."
            )
        contents[file.name] = content
    return contents


def set_aside(file: Path) -> Path:
    """Rename a damaged file, so that a good one can replace it without losing the user's data.

    Raises:
        RequestError: the folder cannot be written to.
    """
    aside = file.with_name(f"{file.name}.damaged")
    try:
        os.replace(file, aside)
    except OSError as error:
        raise _not_writable(file.parent, error) from error
    return aside


def write_data(file: Path, content: bytes) -> None:
    """Write all of ``content`` or nothing, also when another process writes the same file.

    Raises:
        RequestError: the folder cannot be written to.
    """
    try:
        write_atomically(file, content)
    except OSError as error:
        raise _not_writable(file.parent, error) from error


def _not_writable(folder: Path, error: OSError) -> RequestError:
    return RequestError(
        f"data.root: {folder} cannot be written to ({error.strerror}); set PAGNN_DATA to another folder."
    )
