"""Sealed files: JSON with a schema and a checksum, written completely or not at all.

A reader knows that a file is complete and has not changed since it was written.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pagnn_bench.config.atomic import write_atomically
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import digest

SCHEMA = 1

logger = logging.getLogger(__name__)


class StoreError(Exception):
    """A result could not be written (the disk is full, say); everything saved before is still intact."""


class NewerSchemaError(Exception):
    """The file was written by a later version of this package, so we cannot judge it."""


class SealedFiles:
    """Reads sealed files and deals with damaged ones: each is reported, set aside and never counted.

    Attributes:
        damaged: the paths so far that could not be counted, and why.
    """

    def __init__(self) -> None:
        self.damaged: dict[Path, str] = {}

    def read(self, path: Path, **expected: str) -> dict[str, Any] | None:
        """The content of a sealed file, or None if it cannot be counted; unless it is absent, that is reported."""
        try:
            return read_sealed(path, expected)
        except FileNotFoundError:
            return None
        except NewerSchemaError as error:
            self.report(path, f"{error}; not counted")
        except OSError as error:  # it may be intact, so leave it alone
            self.report(path, f"cannot be read ({error.strerror}); not counted")
        except ValueError as error:
            return self._set_aside(path, str(error), expected)
        return None

    def _set_aside(self, path: Path, reason: str, expected: Mapping[str, str]) -> dict[str, Any] | None:
        """Rename a damaged file, never over an earlier one; its content if it proves intact after all."""
        candidates = (path.with_name(f"{path.name}.damaged{n or ''}") for n in itertools.count())
        aside = next(candidate for candidate in candidates if not os.path.lexists(candidate))
        try:
            os.rename(path, aside)
        except OSError as error:  # the folder is read-only, or another reader was faster
            self.report(path, f"{reason}; not counted, and not set aside ({error.strerror})")
            return None
        # A writer may have replaced the damaged file with an intact one before we renamed it.
        with suppress(OSError, ValueError, NewerSchemaError):
            content = read_sealed(aside, expected)
            os.replace(aside, path)
            return content
        self.report(path, f"{reason}; not counted, set aside as {aside.name}")
        return None

    def report(self, path: Path, reason: str) -> None:
        """Note why a path is not counted, and warn about it once."""
        if self.damaged.get(path) != reason:
            self.damaged[path] = reason
            logger.warning("%s %s.", path, reason)


def read_sealed(path: Path, expected: Mapping[str, str]) -> dict[str, Any]:
    """Read a file from :func:`write_sealed` in which the ``expected`` keys have these values.

    Raises:
        ValueError: the file is damaged; the message says how.
        NewerSchemaError, OSError: the file cannot be used, but nothing is known to be wrong with it.
    """
    try:
        body = json.loads(path.read_bytes().decode("utf-8"))
    except IsADirectoryError:
        raise ValueError("is a folder") from None
    except FileNotFoundError:
        if path.is_symlink():
            raise ValueError("is a link that leads nowhere") from None
        raise
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not complete JSON in UTF-8 ({error})") from None
    schema = body.get("schema") if isinstance(body, dict) else None
    if type(schema) is int and schema > SCHEMA:
        raise NewerSchemaError(f"has schema {schema} of a later pagnn-bench; this one reads schema {SCHEMA}")
    if schema != SCHEMA:
        raise ValueError("is not a result file")
    if body.pop("sha256", None) != digest(body):
        raise ValueError("does not match its checksum")
    for key, value in expected.items():
        if body.get(key) != value:
            raise ValueError(f"has {key} {body.get(key)} where {value} belongs")
    return body


def write_sealed(path: Path, content: Mapping[str, Any], indent: int | None = None) -> None:
    """Write ``content`` with schema and checksum, completely or not at all.

    Raises:
        StoreError: the file could not be written.
        ValueError, TypeError: the content is not JSON; NaN and infinity are not.
    """
    # The checksum is of what a reader will see: JSON makes every key a string and every tuple a list.
    body = json.loads(json.dumps({"schema": SCHEMA, **content}, allow_nan=False))
    text = json.dumps({**body, "sha256": digest(body)}, indent=indent) + "\n"
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file of results, completely or not at all.

    Raises:
        StoreError: the file could not be written; whatever was there before is still there.
    """
    try:
        write_atomically(path, content)
    except OSError as error:
        raise StoreError(f"{path} could not be saved: {error.strerror}.") from error


def names_in(folder: Path) -> list[str]:
    """The names in a folder, sorted; none if the folder does not exist."""
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        blocking = next((above for above in (folder, *folder.parents) if above.is_file()), folder)
        raise RequestError(
            f"results_dir: {blocking} cannot be read as a folder ({error.strerror})."
        ) from error
