"""Which attributes are observed: the mask.

The one convention everywhere: ``observed`` is True where a value is known (the paper's M), never the reverse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class Observed:
    """The mask M of n nodes and d attributes.

    Whole-node masks (type 1) are kept as one flag per node and expanded only where that is unavoidable.

    Attributes:
        shape: (n, d).
        rows: bool [n], True where the whole row is observed; None for a mask of single entries.
        cells: bool [n, d], True where the entry is observed; None for a mask of whole rows.
    """

    shape: tuple[int, int]
    rows: np.ndarray | None = None
    cells: np.ndarray | None = None

    def __post_init__(self) -> None:
        if (self.rows is None) == (self.cells is None):
            raise ValueError("an Observed mask has either rows or cells")
        expected, mask = ((self.shape[0],), self.rows) if self.rows is not None else (self.shape, self.cells)
        if mask is None or mask.dtype != np.bool_ or mask.shape != expected:
            raise ValueError(f"expected a boolean mask of shape {expected}")

    @classmethod
    def of(cls, known: np.ndarray) -> Observed:
        """The mask bool [n, d], kept by rows if only whole rows are missing: some methods accept nothing else."""
        rows = np.asarray(known.all(axis=1))
        whole = bool((rows == known.any(axis=1)).all())
        return cls(known.shape, rows=rows) if whole else cls(known.shape, cells=known)

    def __and__(self, other: Observed) -> Observed:
        """The entries observed in both masks."""
        if self.rows is not None and other.rows is not None:
            return Observed(self.shape, rows=self.rows & other.rows)
        return Observed(self.shape, cells=self.dense() & other.dense())

    @property
    def missing_share(self) -> float:
        """Share of hidden entries, the actual rate."""
        return 1.0 - float((self.rows if self.rows is not None else self.dense()).mean())

    def dense(self) -> np.ndarray:
        """The mask as bool [n, d]."""
        if self.cells is not None:
            return self.cells
        assert self.rows is not None
        return np.broadcast_to(self.rows[:, None], self.shape)

    def apply(self, features: sp.csr_array) -> sp.csr_array:
        """M ⊙ X as CSR [n, d]: hidden entries leave the structure, whatever their value (even NaN)."""
        entries = features.tocoo()
        row, column = entries.coords
        keep = self.rows[row] if self.rows is not None else self.dense()[row, column]
        kept = sp.csr_array((entries.data[keep], (row[keep], column[keep])), shape=self.shape)
        kept.sort_indices()
        return kept

    def column_blocks(self, entries: int = 1 << 25) -> Iterator[tuple[int, int, np.ndarray]]:
        """(start, stop, bool [n, stop - start]) over all columns, at most about ``entries`` at a time."""
        n, d = self.shape
        width = max(1, entries // max(n, 1))
        for start in range(0, d, width):
            stop = min(start + width, d)
            yield start, stop, self.dense()[:, start:stop]
