"""Work that one process at a time does, while others that want the same wait for what comes out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Wait until no other process is inside with this file, which exists only as long as somebody is.

    The system lets go of the lock of a process that dies. Where there are no locks, or the folder cannot be written
    to, nobody waits: the work is then done twice, which is slow and not wrong.
    """
    descriptor = _locked(path)
    try:
        yield
    finally:
        if descriptor is not None:
            with suppress(OSError):
                path.unlink()
            os.close(descriptor)


def _locked(path: Path) -> int | None:
    """An open file with the lock on it, None where that cannot be had."""
    while fcntl is not None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR)
        except OSError:
            return None
        held = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Whoever had the lock before has deleted the file: the next to come would lock another one.
            held = os.path.samestat(os.fstat(descriptor), os.stat(path))
        except FileNotFoundError:
            continue
        except OSError:
            return None
        finally:
            if not held:
                os.close(descriptor)
        if held:
            return descriptor
    return None
