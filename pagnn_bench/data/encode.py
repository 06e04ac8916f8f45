"""Categories as columns of 0 and 1: ``data.one_hot``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from pagnn_bench.config.errors import RequestError


@dataclass(frozen=True)
class Encoding:
    """Which columns of a graph become columns of 0 and 1, one per value, placed after all other columns.

    Attributes:
        plain: the other columns, int [k].
        categories: column → its sorted values, in the order of their new columns.
    """

    plain: np.ndarray
    categories: dict[int, np.ndarray]

    @classmethod
    def of(cls, name: str, features: Any, known: np.ndarray | None, columns: Sequence[int]) -> Self:
        """Look up the values.

        Args:
            name: the dataset's name.
            features: ``[n, d]``, dense or sparse, NaN = missing.
            known: ``[n, d]`` bool or None, see :class:`pagnn_bench.data.raw.RawGraph`.
            columns: which are categorical.
        """
        width = features.shape[1]
        if beyond := [column for column in columns if column >= width]:
            raise RequestError(
                f"data.one_hot={list(columns)}: data={name} has no column {beyond[0]}, only 0 to {width - 1}."
            )
        matrix = sparse.csc_array(features) if sparse.issparse(features) else features
        categories = {}
        for column in dict.fromkeys(columns):
            values, seen = _column(matrix, known, column)
            if not seen.any():
                raise RequestError(
                    f"data.one_hot={list(columns)}: column {column} of data={name} has no values."
                )
            categories[column] = np.unique(values[seen])
        return cls(np.setdiff1d(np.arange(width), columns), categories)

    def encode(self, features: Any, known: np.ndarray | None) -> tuple[Any, np.ndarray | None]:
        """(features ``[n, d']``, known ``[n, d']`` or None), sparse if they were.

        A missing category is missing in all its columns.
        """
        matrix = sparse.csc_array(features) if sparse.issparse(features) else features
        blocks = []
        for column, categories in self.categories.items():
            values, seen = _column(matrix, known, column)
            block = np.full((len(values), len(categories)), np.nan, dtype=np.float32)
            block[seen] = values[seen, None] == categories
            blocks.append(block)
        added = np.hstack(blocks)
        if known is not None:  # in the new columns, NaN marks missing entries
            known = np.hstack([known[:, self.plain], np.ones(added.shape, dtype=bool)])
        if sparse.issparse(matrix):
            return sparse.hstack([matrix[:, self.plain], sparse.csc_array(added)], format="csr"), known
        return np.hstack([matrix[:, self.plain], added]), known

    def decode(self, encoded: np.ndarray, observed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """From columns of 0 and 1 back to values: a node's observed category, else the likeliest.

        Args:
            encoded: ``[n, d']``.
            observed: ``[n, d']`` bool, True where the entry was given, False where it was filled in.

        Returns:
            (values float64 ``[n, d]``, NaN if no category stands out; which of them were given, bool ``[n, d]``).
        """
        width = len(self.plain) + len(self.categories)
        values, given = np.empty((len(encoded), width)), np.empty((len(encoded), width), dtype=bool)
        values[:, self.plain] = encoded[:, : len(self.plain)]
        given[:, self.plain] = observed[:, : len(self.plain)]
        first = len(self.plain)
        for column, categories in self.categories.items():
            block = slice(first, first + len(categories))
            shown = observed[:, block] & (encoded[:, block] == 1)
            weight = np.where(observed[:, block], np.where(shown, np.inf, -np.inf), encoded[:, block])
            best = weight.argmax(axis=1)
            alone = (weight == weight.max(axis=1, keepdims=True)).sum(axis=1) == 1
            values[:, column] = np.where(alone, categories[best], np.nan)
            given[:, column] = shown.any(axis=1)
            first = block.stop
        return values, given


def _column(matrix: Any, known: np.ndarray | None, column: int) -> tuple[np.ndarray, np.ndarray]:
    """The values [n] of a column, and which of them are not missing."""
    values = matrix[:, [column]]
    values = (values.toarray() if sparse.issparse(values) else values)[:, 0]
    seen = ~np.isnan(values)
    return values, seen if known is None else seen & known[:, column]
