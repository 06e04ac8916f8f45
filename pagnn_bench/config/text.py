"""Counts, times and errors, formatted for people."""

from __future__ import annotations


def count(number: int, thing: str, things: str | None = None) -> str:
    """``1 trial``, ``2 trials``; ``things`` is the plural if it is irregular."""
    return f"{number} {thing}" if number == 1 else f"{number} {things or thing + 's'}"


def one_line(text: str) -> str:
    """The text of an error, joined into one line."""
    return " ".join(text.split())


def failure_reason(error: str) -> str:
    """The recorded error of a batch in one line; a refusal is a sentence and needs no name of its type."""
    for refusal in ("RequestError: ", "UnsuitableError: "):
        error = error.removeprefix(refusal)
    return one_line(error).rstrip(".")


def duration(seconds: float) -> str:
    """``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
