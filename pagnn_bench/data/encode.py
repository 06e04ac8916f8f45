"""Categories as columns of 0 and 1: ``data.one_hot``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from pagnn_bench.config.errors import RequestError


def one_hot(
    name: str, features: Any, known: np.ndarray | None, columns: Sequence[int]
) -> tuple[Any, np.ndarray | None]:
    """Replace categorical columns by one column of 0 and 1 for each of their values, behind all other columns.

    A missing category is missing in all columns that it could have been in.

    Args:
        name: the dataset's name.
        features: ``[n, d]``, dense or sparse, NaN = missing.
        known: ``[n, d]`` bool or None, see :class:`pagnn_bench.data.raw.RawGraph`.
        columns: which are categorical.

    Returns:
        (features ``[n, d']``, known ``[n, d']`` or None), sparse if they were.
    """
    if not columns:
        return features, known
    nodes, width = features.shape
    if beyond := [column for column in columns if column >= width]:
        raise RequestError(
            f"data.one_hot={list(columns)}: data={name} has no column {beyond[0]}, only 0 to {width - 1}."
        )
    if known is not None and known.shape != features.shape:
        return features, known  # build_graph says what is wrong
    from sklearn.preprocessing import OneHotEncoder  # slow to import

    matrix = sparse.csc_array(features) if sparse.issparse(features) else features
    blocks = []
    for column in dict.fromkeys(columns):
        values = matrix[:, [column]]
        values = values.toarray() if sparse.issparse(values) else values
        seen = ~np.isnan(values[:, 0])
        if known is not None:
            seen &= known[:, column]
        if not seen.any():
            raise RequestError(
                f"data.one_hot={list(columns)}: column {column} of data={name} has no value at all."
            )
        encoded = OneHotEncoder(sparse_output=False, dtype=np.float32).fit_transform(values[seen])
        block = np.full((nodes, encoded.shape[1]), np.nan, dtype=np.float32)
        block[seen] = encoded
        blocks.append(block)
    plain = np.setdiff1d(np.arange(width), columns)
    added = np.hstack(blocks)
    if known is not None:  # NaN tells it of the new columns
        known = np.hstack([known[:, plain], np.ones(added.shape, dtype=bool)])
    if sparse.issparse(matrix):
        return sparse.hstack([matrix[:, plain], sparse.csc_array(added)], format="csr"), known
    return np.hstack([matrix[:, plain], added]), known
