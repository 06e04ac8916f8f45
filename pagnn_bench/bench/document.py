"""The JSON document of a measurement: every single repeat, and the machine."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from pagnn_bench.config.atomic import write_atomically
from pagnn_bench.config.errors import RequestError

SCHEMA = 1

# By kind, the keys of a document besides ``schema``, ``kind``, ``settings`` and ``machine``.
KINDS = {"speed": ("places", "rows"), "growth": ("points",), "parallel": ("rows",)}

Document: TypeAlias = "dict[str, Any]"


def new_document(kind: str, settings: Mapping[str, Any], machine: Mapping[str, Any]) -> Document:
    """A document without measurements."""
    empty: Document = {key: [] for key in KINDS[kind]}
    return {"schema": SCHEMA, "kind": kind, "settings": dict(settings), "machine": dict(machine), **empty}


def save_document(document: Document, path: str | Path) -> None:
    """Write it, completely or not at all: a measurement may take hours and is saved after every part."""
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    try:
        write_atomically(Path(path), text.encode())
    except OSError as error:
        raise RequestError(f"-o {path}: cannot be written ({error.strerror}).") from error


def load_document(path: str | Path, option: str = "--show") -> Document:
    """Read a document that ``bench`` wrote.

    Raises:
        RequestError: there is no such file, or it is something else.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise RequestError(f"{option} {path}: cannot be read ({error.strerror}).") from error
    except ValueError as error:
        raise RequestError(f"{option} {path}: is not JSON.") from error
    kind = str(document.get("kind")) if isinstance(document, dict) else ""
    if kind not in KINDS or not {"settings", "machine", *KINDS[kind]} <= document.keys():
        raise RequestError(f"{option} {path}: was not written by `pagnn-bench bench -o`.")
    if (schema := document.get("schema")) != SCHEMA:
        raise RequestError(f"{option} {path}: has schema {schema}, this version reads schema {SCHEMA}.")
    return document


def check_writable(path: str | None, option: str) -> None:
    """Refuse a file that cannot be written, before hours are spent on its content."""
    if path is None:
        return
    folder = Path(path).parent
    if not folder.is_dir():
        raise RequestError(f"{option} {path}: there is no folder {folder}.")
    if not os.access(folder, os.W_OK) or Path(path).is_dir():
        raise RequestError(f"{option} {path}: cannot be written.")
