"""Checks of hyper-parameters, for the constructors of methods."""

from __future__ import annotations

from typing import Any

from pagnn_bench.config import schema


def flag(key: str, value: Any) -> bool:
    """A hyper-parameter that is true or false (not a word such as ``no``, which Python takes for true)."""
    return bool(schema.FLAG.check(f"method.{key}", value))


def whole(key: str, value: Any, least: int = 1) -> int:
    """A hyper-parameter that is a whole number."""
    return int(schema.whole(least).check(f"method.{key}", value))


def positive(key: str, value: Any) -> float:
    """A hyper-parameter that is a positive number."""
    return float(schema.POSITIVE.check(f"method.{key}", value))


def not_negative(key: str, value: Any) -> float:
    """A hyper-parameter that is a number of at least 0."""
    return float(schema.NOT_NEGATIVE.check(f"method.{key}", value))


def fraction(key: str, value: Any) -> float:
    """A hyper-parameter that is a share, from 0 up to, but not including, 1."""
    return float(schema.SHARE.check(f"method.{key}", value))


def choice(key: str, value: Any, choices: tuple[str, ...]) -> str:
    """A hyper-parameter that is one of a few words."""
    return str(schema.one_of(choices).check(f"method.{key}", value))
