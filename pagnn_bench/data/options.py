"""Reading one value of the ``data`` group, with the sentence a wrong value deserves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pagnn_bench.config.errors import RequestError


def integer(config: Mapping[str, Any], key: str, at_least: int, at_most: float = math.inf) -> int:
    """The whole number under ``key``."""
    value = config[key]
    if type(value) is int and at_least <= value <= at_most:
        return value
    bounds = f"from {at_least} to {at_most:g}" if at_most < math.inf else f"of at least {at_least}"
    raise RequestError(f"data.{key}={value}: give a whole number {bounds}.")


def number(config: Mapping[str, Any], key: str, low: float, high: float = math.inf) -> float:
    """The finite number under ``key``, from ``low`` to ``high``, both included."""
    value = config[key]
    if type(value) in (int, float) and math.isfinite(value) and low <= value <= high:
        return float(value)
    bounds = f"from {low:g} to {high:g}" if math.isfinite(high) else f"of at least {low:g}"
    raise RequestError(f"data.{key}={value}: give a number {bounds}.")
