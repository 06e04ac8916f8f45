"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file through a temporary one beside it, which is flushed to the disk and renamed.

    Whenever the writer is killed, the old content or all of the new one is there. Two writers do each other no harm.

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
        with suppress(OSError):  # once renamed it is gone
            temporary.unlink()


def _sync_folder(folder: Path) -> None:
    """Make a new name in ``folder`` survive a power cut, where the file system can do that."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        # Windows does not open folders, and some network file systems do not sync them: no harm to the file.
        if error.errno not in (errno.EACCES, errno.EINVAL, errno.ENOTSUP):
            raise
