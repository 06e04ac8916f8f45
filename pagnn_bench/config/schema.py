"""The valid values of a key, and the sentence that refuses an invalid one.

A group states its keys as ``{"patience": whole(1), "stopping": one_of(RULES)}``; :func:`check_group` refuses unknown
keys, missing keys and invalid values. Booleans never count as numbers here, as they do in Python.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pagnn_bench.config.errors import RequestError, refuse
from pagnn_bench.config.identity import NOT_IDENTITY


@dataclass(frozen=True)
class Valid:
    """The values that a key may have.

    Attributes:
        accepts: whether a value is valid.
        choices: the valid values, as the end of a sentence: ``give a whole number of at least 1``.
    """

    accepts: Callable[[Any], bool]
    choices: str

    def check(self, key: str, value: Any) -> Any:
        """The value itself; refuses an invalid one."""
        return value if self.accepts(value) else refuse(key, value, self.choices)


Schema: TypeAlias = "Mapping[str, Valid]"


def one_of(choices: Iterable[str]) -> Valid:
    names = list(choices)  # a list, since an unhashable value cannot be looked up in a set
    return Valid(lambda value: value in names, f"choose one of {', '.join(names)}")


def whole(least: int, most: float = math.inf) -> Valid:
    """Whole numbers from ``least`` to ``most``, both included."""
    bounds = f"of at least {least}" if most == math.inf else f"from {least} to {most:g}"
    return Valid(lambda value: type(value) is int and least <= value <= most, f"give a whole number {bounds}")


def number(least: float, most: float = math.inf) -> Valid:
    """Finite numbers from ``least`` to ``most``, both included."""
    bounds = f"from {least:g} to {most:g}" if most < math.inf else f"of at least {least:g}"
    return Valid(lambda value: _finite(value) and least <= value <= most, f"give a number {bounds}")


def or_null(valid: Valid) -> Valid:
    """The same, or null."""
    return Valid(lambda value: value is None or valid.accepts(value), f"{valid.choices}, or null")


def or_auto(valid: Valid) -> Valid:
    """The same, or the word ``auto``."""
    return Valid(lambda value: value == "auto" or valid.accepts(value), f"{valid.choices}, or auto")


def group(schema: Schema) -> Valid:
    """Mappings with exactly the keys of a schema, each with a valid value."""

    def accepts(value: Any) -> bool:
        keys = isinstance(value, Mapping) and value.keys() == schema.keys()
        return keys and all(valid.accepts(value[key]) for key, valid in schema.items())

    keys = ", ".join(f"{key} ({valid.choices})" for key, valid in schema.items())
    return Valid(accepts, f"give {keys}")


def _finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


FLAG = Valid(lambda value: isinstance(value, bool), "choose true or false")
TEXT = Valid(lambda value: isinstance(value, str), "give a text")
POSITIVE = Valid(lambda value: _finite(value) and value > 0, "give a number above 0")
DEVICE = Valid(
    lambda value: isinstance(value, str) and re.fullmatch(r"auto|(cpu|cuda)(:\d{1,2})?", value) is not None,
    "choose auto, cpu, cuda, or cuda:0, cuda:1 and so on",
)
NOT_NEGATIVE = Valid(lambda value: _finite(value) and value >= 0, "give a number not below 0")
SHARE = Valid(
    lambda value: _finite(value) and 0 <= value < 1, "give a share from 0 up to, but not including, 1"
)


def check_group(group: str, config: Mapping[str, Any], schema: Schema, owner: str) -> None:
    """Refuse a group with a missing key, an unknown key or an invalid value.

    Args:
        group: its name, the prefix of every key in messages.
        config: the resolved group.
        schema: its keys and their valid values.
        owner: who reads these keys, for the error message.
    """
    for key in sorted(schema.keys() - config.keys()):
        raise RequestError(f"{group}.{key}: {owner} needs this key.")
    # A key that nothing reads would look like a setting.
    for key in sorted(config.keys() - schema.keys() - NOT_IDENTITY - {"name"}):
        raise RequestError(f"{group}.{key}: {owner} has no such key.")
    check_values(f"{group}.", config, schema)


def check_values(prefix: str, config: Mapping[str, Any], schema: Schema) -> None:
    """Refuse an invalid value; ``prefix`` goes before every key in messages."""
    for key, valid in schema.items():
        valid.check(f"{prefix}{key}", config[key])
