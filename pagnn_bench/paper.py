"""The paper's own numbers: every entry of its Tables 2 and 3, as printed."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class PaperEntry:
    """One printed number.

    Attributes:
        accuracy: mean test accuracy in percent.
        copied: True for the starred rows, which the paper took over from the GCNmf paper.
    """

    accuracy: float
    copied: bool


@cache
def paper_entries() -> dict[tuple[str, str, str, float], PaperEntry]:
    """(missing, data, method, rate) → the paper's entry, 260 of them, in the order of the tables."""
    text = files("pagnn_bench").joinpath("paper.csv").read_text(encoding="utf-8")
    return {
        (row["missing"], row["data"], row["method"], float(row["rate"])): PaperEntry(
            float(row["accuracy"]), row["copied"] == "1"
        )
        for row in csv.DictReader(text.splitlines())
    }


def paper_accuracy(missing: str, data: str, method: str, rate: float) -> float | None:
    """The printed accuracy in percent, or None where the paper has no such entry."""
    entry = paper_entries().get((missing, data, method, rate))
    return None if entry is None else entry.accuracy
