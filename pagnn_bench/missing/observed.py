"""Which attributes are observed: the mask, and how it is drawn.

The one convention everywhere: ``observed`` is True where a value is known (the paper's M), never the reverse.
Masks are drawn by numpy on the CPU, so they are the same on every device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from pagnn_bench.config.errors import refuse
from pagnn_bench.config.schema import FLAG, SHARE, Schema, Valid, check_group, one_of

PATTERNS = ("rows", "cells", "biased")  # what can be drawn
_PATTERN = one_of([*PATTERNS, "natural"])
_NOT_EXACT = Valid(
    lambda value: value is False, "choose false: exact counts are defined for type1 and type2, not for biased"
)
MISSING: dict[str, Schema] = {
    "rows": {"pattern": _PATTERN, "exact": FLAG},
    "cells": {"pattern": _PATTERN, "exact": FLAG},
    "biased": {"pattern": _PATTERN, "exact": _NOT_EXACT, "low": SHARE, "high": SHARE},
    "natural": {"pattern": _PATTERN, "further": one_of(("cells", "rows")), "exact": FLAG},
}


@dataclass(frozen=True)
class Observed:
    """The mask M of n nodes and d attributes.

    Whole-node masks (type 1) are kept as one flag per node and never expanded by the code that can do without.

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
        """The mask bool [n, d], by rows if whole rows are missing only: some methods are defined for these alone."""
        rows = np.asarray(known.all(axis=1))
        whole = bool((rows == known.any(axis=1)).all())
        return cls(known.shape, rows=rows) if whole else cls(known.shape, cells=known)

    def __and__(self, other: Observed) -> Observed:
        """What both masks let through."""
        if self.rows is not None and other.rows is not None:
            return Observed(self.shape, rows=self.rows & other.rows)
        return Observed(self.shape, cells=self.dense() & other.dense())

    @property
    def missing_share(self) -> float:
        """Share of hidden entries: the rate as drawn."""
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


def draw_observed(missing: Mapping[str, Any], rate: float, shape: tuple[int, int], seed: int) -> Observed:
    """Draw a mask of the configured pattern.

    Args:
        missing: the ``missing`` group: ``pattern``, ``exact``, for biased ``low``, ``high``, for natural ``further``.
        rate: share of missing entries, in [0, 1).
        shape: (n, d).
        seed: seed of the mask (see :meth:`pagnn_bench.config.identity.Cell.mask_seed`).

    Returns:
        Rows or entries are hidden independently with probability ``rate``, or exactly ``round(rate * total)`` of
        them with ``exact``. At least one row (entry) always stays observed.
    """
    check_missing(missing, rate)
    rng = np.random.default_rng(seed)
    exact, pattern = missing["exact"], drawn_pattern(missing)
    if pattern == "rows":
        return Observed(shape, rows=_observe_some(rng, shape[:1], rate, exact))
    if pattern == "cells":
        return Observed(shape, cells=_observe_some(rng, shape, rate, exact))
    # GCNmf's third type: a column is of the badly hit kind with the probability that makes the mean rate come out.
    low, high = missing["low"], missing["high"]
    badly_hit = rng.random(shape[1]) < (rate - low) / (high - low)
    return Observed(shape, cells=_draw_some(rng, shape, np.where(badly_hit, high, low)))


def drawn_pattern(missing: Mapping[str, Any]) -> str:
    """What is hidden by chance: that of ``missing=natural`` comes on top of what is missing anyway."""
    return str(missing["further"] if missing["pattern"] == "natural" else missing["pattern"])


def check_missing(missing: Mapping[str, Any], rate: float) -> None:
    """Refuse a ``missing`` group that makes no sense, before anything is trained."""
    pattern = _PATTERN.check("missing.pattern", missing.get("pattern"))
    check_group("missing", missing, MISSING[pattern], f"pattern {pattern}")
    if pattern == "biased":
        low, high = missing["low"], missing["high"]
        if not low < high:
            refuse("missing.low", low, f"give a rate below missing.high={high}")
        if not low <= rate <= high:
            refuse("rate", f"{rate:g}", f"missing=biased takes rates from {low:g} (low) to {high:g} (high)")


def _observe_some(rng: np.random.Generator, shape: tuple[int, ...], rate: float, exact: bool) -> np.ndarray:
    if exact:
        total = int(np.prod(shape))
        observed = np.ones(total, dtype=bool)
        observed[
            rng.choice(total, size=min(round(rate * total), total - 1), replace=False, shuffle=False)
        ] = False
        return observed.reshape(shape)
    return _draw_some(rng, shape, rate)


def _draw_some(rng: np.random.Generator, shape: tuple[int, ...], rate: float | np.ndarray) -> np.ndarray:
    """As :func:`_draw`, but one at least stays observed."""
    observed = _draw(rng, shape, rate)
    if not observed.any():
        observed.flat[rng.integers(observed.size)] = True
    return observed


def _draw(rng: np.random.Generator, shape: tuple[int, ...], rate: float | np.ndarray) -> np.ndarray:
    """Independent flags, True with probability 1 - rate; in blocks, so that no float array of n x d is ever held."""
    observed = np.empty(shape, dtype=bool)
    block = max(1, (1 << 22) // (shape[1] if len(shape) > 1 else 1))
    for start in range(0, shape[0], block):
        part = observed[start : start + block]
        part[...] = rng.random(part.shape) >= rate
    return observed
