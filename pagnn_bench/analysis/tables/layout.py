"""Tables as plain data; :mod:`pagnn_bench.analysis.tables.render` writes them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Value:
    """An entry: its text, the small print after it, and a verdict that may colour it."""

    text: str = ""
    small: str = ""
    bold: bool = False
    verdict: str = ""


@dataclass(frozen=True)
class TablePart:
    """Some columns of a table with their rows.

    Attributes:
        spans: headings above the header, as (text, number of columns), from the first column on.
        header: one text per column.
        rows: the entries; the first ``stub`` entries of a row are its names.
        stub: number of columns with names, left aligned.
        rules: numbers of the rows with a line above them.
    """

    spans: list[tuple[str, int]]
    header: list[str]
    rows: list[list[Value]]
    stub: int = 1
    rules: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Table:
    """A table: ``name`` for files and references, ``caption`` as sentences."""

    name: str
    title: str
    caption: list[str]
    parts: list[TablePart] = field(default_factory=list)


def three_digits(value: float) -> str:
    """Three significant digits without an exponent: 0.994, 25.5, 1950."""
    return f"{float(f'{value:.3g}'):.0f}" if value >= 100 else f"{value:.3g}"


def signed(value: float, digits: int = 2) -> str:
    """With its sign, but never ``-0.00``."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"
