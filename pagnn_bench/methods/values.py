"""Checking one hyper-parameter of a method, with the sentence that a wrong value deserves."""

from __future__ import annotations

import math
from typing import Any

from pagnn_bench.config.errors import RequestError


def flag(key: str, value: Any) -> bool:
    """A hyper-parameter that is true or false; a word such as ``no`` would count as true."""
    if isinstance(value, bool):
        return value
    raise RequestError(f"method.{key}={value}: choose true or false.")


def whole(key: str, value: Any) -> int:
    """A hyper-parameter that counts something."""
    if type(value) is int and value >= 1:
        return value
    raise RequestError(f"method.{key}={value}: give a whole number of at least 1.")


def positive(key: str, value: Any) -> float:
    """A hyper-parameter that is a positive number."""
    if type(value) in (int, float) and 0 < value < math.inf:
        return float(value)
    raise RequestError(f"method.{key}={value}: give a number above 0.")


def not_negative(key: str, value: Any) -> float:
    """A hyper-parameter that is a number from 0 on."""
    if type(value) in (int, float) and 0 <= value < math.inf:
        return float(value)
    raise RequestError(f"method.{key}={value}: give a number not below 0.")


def fraction(key: str, value: Any) -> float:
    """A hyper-parameter that is a share, from 0 up to, but not including, 1."""
    if type(value) in (int, float) and 0 <= value < 1:
        return float(value)
    raise RequestError(f"method.{key}={value}: give a share from 0 up to, but not including, 1.")
