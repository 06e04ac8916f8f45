"""Files that are written completely or not at all."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a temporary file next to the target, flush it to disk and rename it.

    Whenever the writer is killed, the file has all of its old or all of its new content. Two writers do no harm.

    Raises:
        OSError: the file could not be written; whatever was there before is still there.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            _sync_folder(path.parent.parent)
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    finally:
        with suppress(OSError):  # after renaming it is gone
            temporary.unlink()


def _sync_folder(folder: Path) -> None:
    """Make a new name in ``folder`` survive a power cut, if the file system supports that."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        # Windows cannot open folders, and some network file systems cannot sync them; the file itself is safe.
        if error.errno not in (errno.EACCES, errno.EINVAL, errno.ENOTSUP):
            raise
