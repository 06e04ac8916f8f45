"""``data=custom data.path=FILE.npz``: a graph of the user's own.

Keys of the file:

* ``features``: ``[n, d]`` numbers; or, for a sparse matrix, the CSR arrays ``features_data``,
  ``features_indices``, ``features_indptr`` and ``features_shape``.
* ``edges``: ``[2, E]`` or ``[E, 2]`` node indices from 0 (two by two is read as ``[2, E]``); direction,
  duplicates and self loops play no part.
* ``labels``: ``[n]`` integers, classes from 0, -1 = unlabelled.
* ``train_idx``, ``val_idx``, ``test_idx``: node indices, optional (all three or none).
"""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from pagnn_bench.config.errors import RequestError
from pagnn_bench.data.graph import Graph, Split, build_graph, check_labels
from pagnn_bench.data.splits import choose_split

SPLIT_KEYS = ("train_idx", "val_idx", "test_idx")
CSR_KEYS = ("features_data", "features_indices", "features_indptr", "features_shape")


def load_custom(config: Mapping[str, Any]) -> Graph:
    """Read the file that ``data.path`` names; a split inside it can be chosen as ``data.split=file``."""
    name, path = config["name"], config["path"]
    arrays = _read_archive(path, config.get("content"))

    def array(key: str) -> np.ndarray:
        if key not in arrays:
            raise RequestError(
                f"data.path={path}: the key {key} is missing; the file has {', '.join(arrays)}."
            )
        return arrays[key]

    features = array("features") if "features_data" not in arrays else _csr(path, *map(array, CSR_KEYS))
    if features.ndim != 2 or features.dtype.kind not in "biuf":
        found = f"{features.dtype} of shape {list(features.shape)}"
        raise RequestError(f"data.path={path}: features are one row of numbers a node, found {found}.")
    edges = array("edges")
    if edges.ndim == 2 and edges.shape[0] != 2 and edges.shape[1] == 2:
        edges = edges.T
    labels = check_labels(name, array("labels"))
    published: dict[str, Callable[[], Split]] = {}
    if any(key in arrays for key in SPLIT_KEYS):
        published["file"] = lambda: Split(*map(array, SPLIT_KEYS))
    return build_graph(name, features, edges, labels, choose_split(config, labels, published))


def _read_archive(path: str | None, content_hash: str | None) -> dict[str, np.ndarray]:
    """All arrays of the file; a pickle inside is refused, never loaded."""
    if not path:
        raise RequestError("data.path: data=custom needs the path of an .npz file, data.path=FILE.npz.")
    try:
        content = Path(path).expanduser().read_bytes()
    except OSError as error:
        raise RequestError(f"data.path={path}: the file cannot be read ({error.strerror}).") from error
    if content_hash and hashlib.sha256(content).hexdigest() != content_hash:
        raise RequestError(f"data.path={path}: the file has changed since this run was planned.")
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise RequestError(f"data.path={path}: this is not an .npz file (numpy.savez makes one).")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = dict(archive)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        # numpy's own words; for an object array: «Object arrays cannot be loaded when allow_pickle=False».
        raise RequestError(f"data.path={path}: the file cannot be read as plain arrays ({error}).") from error
    for key, value in arrays.items():
        if not isinstance(value, np.ndarray):  # numpy hands over any other member as bytes
            raise RequestError(f"data.path={path}: {key} is no array.")
    return arrays


def _csr(path: str, *parts: np.ndarray) -> sparse.csr_array:
    data, indices, indptr, shape = parts
    try:
        matrix = sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
        matrix.check_format(full_check=True)  # the constructor does not look at every index
    except (ValueError, TypeError) as error:
        raise RequestError(f"data.path={path}: {', '.join(CSR_KEYS)} are no CSR matrix ({error}).") from error
    return matrix
