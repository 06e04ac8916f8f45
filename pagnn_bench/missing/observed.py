"""Draw random masks, and check ``missing`` groups.

Masks are drawn by numpy on the CPU, so they are the same on every device.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pagnn_bench.config.errors import refuse
from pagnn_bench.config.schema import FLAG, SHARE, Schema, Valid, check_group, one_of
from pagnn_bench.missing.mask import Observed
from pagnn_bench.missing.mechanisms import check_mechanism

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


def draw_observed(missing: Mapping[str, Any], rate: float, shape: tuple[int, int], seed: int) -> Observed:
    """Draw a mask of the configured pattern.

    Args:
        missing: the ``missing`` group: ``pattern``, ``exact``, and ``low``, ``high`` (biased) or ``further`` (natural).
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
    # GCNmf's third type: the probability that a column is badly hit is such that the mean rate comes out right.
    low, high = missing["low"], missing["high"]
    badly_hit = rng.random(shape[1]) < (rate - low) / (high - low)
    return Observed(shape, cells=_draw_some(rng, shape, np.where(badly_hit, high, low)))


def drawn_pattern(missing: Mapping[str, Any]) -> str:
    """The pattern that is drawn at random; with ``missing=natural``, on top of what is missing anyway."""
    return str(missing["further"] if missing["pattern"] == "natural" else missing["pattern"])


def check_missing(missing: Mapping[str, Any], rate: float) -> None:
    """Refuse a ``missing`` group that makes no sense, before anything is trained."""
    if "by" in missing:
        return check_mechanism(missing, rate)
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
        hidden = min(round(rate * total), total - 1)
        observed = np.ones(total, dtype=bool)
        observed[rng.choice(total, size=hidden, replace=False, shuffle=False)] = False
        return observed.reshape(shape)
    return _draw_some(rng, shape, rate)


def _draw_some(rng: np.random.Generator, shape: tuple[int, ...], rate: float | np.ndarray) -> np.ndarray:
    """As :func:`_draw`, but at least one entry stays observed."""
    observed = _draw(rng, shape, rate)
    if not observed.any():
        observed.flat[rng.integers(observed.size)] = True
    return observed


def _draw(rng: np.random.Generator, shape: tuple[int, ...], rate: float | np.ndarray) -> np.ndarray:
    """Independent flags, True with probability 1 - rate; drawn in blocks, to avoid a float array of n x d."""
    observed = np.empty(shape, dtype=bool)
    block = max(1, (1 << 22) // (shape[1] if len(shape) > 1 else 1))
    for start in range(0, shape[0], block):
        part = observed[start : start + block]
        part[...] = rng.random(part.shape) >= rate
    return observed
