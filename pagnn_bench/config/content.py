"""The user's own files behind a graph: they may move, so they are identified by their content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pagnn_bench.config.errors import RequestError

FILES = ("path", "nodes", "edges")  # the keys of a ``data`` group that name files


def read_files(data: Mapping[str, Any]) -> dict[str, bytes]:
    """The content of every file that a ``data`` group names, by key.

    Raises:
        RequestError: a file cannot be read.
    """
    contents = {}
    for key in FILES:
        if not data.get(key):
            continue
        path = Path(str(data[key])).expanduser()
        try:
            if not path.is_file():  # an error where the folder may not be read
                raise RequestError(f"data.{key}={data[key]}: there is no such file.")
            contents[key] = path.read_bytes()
        except OSError as error:
            raise RequestError(f"data.{key}={data[key]}: cannot be read ({error.strerror}).") from error
    return contents


def read_unchanged(data: Mapping[str, Any]) -> dict[str, bytes]:
    """As :func:`read_files`; refuses files that have changed since the cell was made."""
    contents = read_files(data)
    if data.get("content") and content_of(contents) != data["content"]:
        names = " ".join(f"data.{key}={data[key]}" for key in contents)
        subject = "the file has" if len(contents) == 1 else "one of the files has"
        raise RequestError(f"{names}: {subject} changed since this run was planned.")
    return contents


def content_of(contents: Mapping[str, bytes]) -> str:
    """One SHA-256 for all files of a graph; for a single file at ``path`` its own, which other tools can verify."""
    hashes = {key: hashlib.sha256(content).hexdigest() for key, content in contents.items()}
    if list(hashes) == ["path"]:
        return hashes["path"]
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()
