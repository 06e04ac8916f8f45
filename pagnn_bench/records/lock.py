"""Work that one process does while the others that want its result wait."""

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
    """Let one process in at a time. The lock file exists only while a process is inside.

    If a process dies, the system releases its lock. Where there are no locks, or the folder cannot be written to,
    no process waits: the work may then be done twice, which is slow but not wrong.
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
    """The descriptor of the locked file, None if it cannot be locked."""
    while fcntl is not None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR)
        except OSError:
            return None
        held = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # If the previous holder deleted the file, the next process would lock a new one: try again.
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
