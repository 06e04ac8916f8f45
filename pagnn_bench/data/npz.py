"""A graph in an ``.npz`` file.

Keys of the file:

* ``features``: ``[n, d]`` numbers, NaN where an attribute is missing; or, for a sparse matrix, the CSR arrays
  ``features_data``, ``features_indices``, ``features_indptr`` and ``features_shape``.
* ``observed``: ``[n, d]`` booleans, False where an attribute is missing, whatever ``features`` holds there; or the CSR
  arrays ``observed_data`` and so on, True where a nonzero value is stored. Optional.
* ``edges``: ``[2, E]`` or ``[E, 2]`` node indices from 0 (two by two is read as ``[2, E]``); direction,
  duplicates and self loops do not matter.
* ``labels``: ``[n]`` integers, classes from 0, -1 = unlabelled.
* ``train_idx``, ``val_idx``, ``test_idx``: node indices, optional (all three or none).
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from pagnn_bench.config.errors import RequestError
from pagnn_bench.data.graph import Split
from pagnn_bench.data.raw import RawGraph

SPLIT_KEYS = ("train_idx", "val_idx", "test_idx")
PLAIN_KEYS = ("features", "observed", "edges", "labels", *SPLIT_KEYS)
CSR_PARTS = ("data", "indices", "indptr", "shape")
KEYS = {*PLAIN_KEYS, *(f"{key}_{part}" for key in ("features", "observed") for part in CSR_PARTS)}


class NpzFile:
    """The arrays of a file; refuses missing or malformed ones by name.

    Args:
        path: as the user gave it, for messages.
        content: of the file; a pickle inside is refused, never loaded.
    """

    def __init__(self, path: str, content: bytes) -> None:
        self.path, self.arrays = path, _read_archive(path, content)

    def raw(self) -> RawGraph:
        """The graph; a split inside can be chosen as ``data.split=file``.

        A key without a meaning is refused: a mask or a split under another name would be left out without a word.
        """
        if unknown := self.arrays.keys() - KEYS:
            self.refuse(f"the key {min(unknown)} has no meaning here; the keys are {', '.join(PLAIN_KEYS)}")
        features = self.matrix("features")
        if features.ndim != 2 or features.dtype.kind not in "biuf":
            self.refuse(f"features must be one row of numbers per node, found {_found(features)}")
        edges = self["edges"]
        if edges.ndim == 2 and edges.shape[0] != 2 and edges.shape[1] == 2:
            edges = edges.T
        splits: dict[str, Callable[[], Split]] = {}
        if any(key in self.arrays for key in SPLIT_KEYS):
            splits["file"] = lambda: Split(*map(self.__getitem__, SPLIT_KEYS))
        return RawGraph(features, edges, self["labels"], self.observed(), splits)

    def observed(self) -> np.ndarray | None:
        """``[n, d]`` bool; None if the file has no mask."""
        if not {"observed", "observed_data"} & self.arrays.keys():
            return None
        mask = self.matrix("observed")
        mask = mask.toarray() if sparse.issparse(mask) else mask
        if mask.ndim != 2 or mask.dtype.kind not in "biuf" or not np.isin(mask, (0, 1)).all():
            self.refuse(
                f"observed must be true or false for every attribute of every node, found {_found(mask)}"
            )
        return mask.astype(bool)

    def matrix(self, key: str) -> Any:
        """A dense array, or a CSR matrix stored as four arrays."""
        if f"{key}_data" not in self.arrays:
            return self[key]
        names = [f"{key}_{part}" for part in CSR_PARTS]
        data, indices, indptr, shape = map(self.__getitem__, names)
        try:
            matrix = sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
            matrix.check_format(full_check=True)  # the constructor does not check every index
        except (ValueError, TypeError) as error:
            self.refuse(f"{', '.join(names)} do not form a CSR matrix ({error})", error)
        return matrix

    def __getitem__(self, key: str) -> np.ndarray:
        if key not in self.arrays:
            self.refuse(f"the key {key} is missing; the file has {', '.join(self.arrays)}")
        return self.arrays[key]

    def refuse(self, what: str, cause: Exception | None = None) -> Any:
        raise RequestError(f"data.path={self.path}: {what}.") from cause


def _found(array: Any) -> str:
    return f"{array.dtype} of shape {list(array.shape)}"


def _read_archive(path: str, content: bytes) -> dict[str, np.ndarray]:
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise RequestError(f"data.path={path}: this is not an .npz file as written by numpy.savez.")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = dict(archive)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        # For an object array, numpy says "Object arrays cannot be loaded when allow_pickle=False".
        raise RequestError(f"data.path={path}: the file cannot be read as plain arrays ({error}).") from error
    for key, value in arrays.items():
        if not isinstance(value, np.ndarray):  # numpy returns other members as bytes
            raise RequestError(f"data.path={path}: {key} is not an array.")
    return arrays
