"""Arrays that are slow to compute, cached in files named after what they were computed from."""

from __future__ import annotations

import hashlib
import io
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pagnn_bench.config.atomic import write_atomically
from pagnn_bench.records.lock import only_one

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CachedArray:
    """An array and the seconds it took to compute, now or earlier; ``hit`` if it came from a file."""

    values: np.ndarray
    seconds: float
    hit: bool


def cached_array(
    folder: Path | None, key: str, compute: Callable[[], np.ndarray], relearn: bool = False
) -> CachedArray:
    """The array of this key, read from its file, or computed and saved.

    A file that is damaged or belongs to another key gets a warning, and the array is computed again. So does a folder
    that cannot be written to, which only costs the next run time. If several processes want the same array, one
    computes it and the others wait.

    Args:
        folder: where the files are; None saves nothing.
        key: identifies the content completely, such as a digest of all inputs.
        compute: makes the array.
        relearn: compute it even if there is a file, which is then replaced.
    """
    if folder is None:
        return _computed(compute)
    path = folder / f"{key}.npz"
    version = _version(path)
    cached = None if relearn else _load(path, key)
    if cached is not None:
        return cached
    with only_one(path.with_suffix(".lock")):
        # What another process made in the meantime is new enough, even for `relearn`.
        if _version(path) != version and (cached := _load(path, key)) is not None:
            return cached
        made = _computed(compute)
        try:
            _write(path, key, made.values, made.seconds)
        except OSError as error:
            logger.warning("%s could not be saved (%s).", path, error.strerror)
    return made


def _computed(compute: Callable[[], np.ndarray]) -> CachedArray:
    start = time.perf_counter()
    values = compute()
    return CachedArray(values, time.perf_counter() - start, hit=False)


def _load(path: Path, key: str) -> CachedArray | None:
    """The array in a file; None if there is no file, or a damaged one, which gets a warning."""
    if not path.exists():
        return None
    try:
        return _read(path, key)
    except Exception as error:  # a damaged archive raises anything from zlib.error to NotImplementedError
        logger.warning("%s is damaged (%s); it is computed again.", path, error)
        return None


def _version(path: Path) -> tuple[int, int] | None:
    """Changes whenever the file is rewritten; None while there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _digest(key: str, values: np.ndarray) -> str:
    return hashlib.sha256(f"{key}{values.dtype.str}{values.shape}".encode() + values.tobytes()).hexdigest()


def _read(path: Path, key: str) -> CachedArray:
    with np.load(path, allow_pickle=False) as file:
        values, seconds, digest = file["values"], float(file["seconds"]), str(file["sha256"])
    if digest != _digest(key, values):
        raise ValueError("it does not match its checksum")
    return CachedArray(values, seconds, hit=True)


def _write(path: Path, key: str, values: np.ndarray, seconds: float) -> None:
    content = io.BytesIO()
    np.savez_compressed(content, values=values, seconds=seconds, sha256=_digest(key, values))
    write_atomically(path, content.getvalue())
