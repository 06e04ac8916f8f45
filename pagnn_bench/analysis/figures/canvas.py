"""A figure is a list of panels: side by side in a file, separate on a page, where a phone shows them in a column."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Sheet
from matplotlib.lines import Line2D

FORMATS = ("svg", "pdf", "png")

# Odd shades, to be found in an SVG and replaced by the colours of a page, light or dark.
INK, FAINT, PAPER = "#1a1b1c", "#d9dadb", "#fefdfe"
PAGE_COLOURS = {INK: "currentColor", FAINT: "var(--line)", PAPER: "var(--page)"}

# Mid-tones that can be told apart on white and on black, and by most of the colour-blind.
COLOURS = {
    "mf": "#8a8f98",
    "vae": "#c58b00",
    "gain": "#9a5b2e",
    "sat": "#2a9d6f",
    "gcnmf": "#8662c7",
    "pagnn_m": "#2f86d6",
    "pagnn_n": "#d9434e",
}
MARKERS = {"mf": "s", "vae": "v", "gain": "^", "sat": "P", "gcnmf": "D", "pagnn_m": "o", "pagnn_n": "o"}
OTHERS = ("#3aa6a6", "#b2568f", "#6b8e23", "#b86b4b", "#5c6bc0", "#7d7d3c", "#4e7a8c", "#a8a000")

# Width of a legend entry at the font size below: its line and marker with margins, plus each letter of its text.
HANDLE_INCHES, LETTER_INCHES = 0.55, 0.065

STYLE: Any = {
    "font.size": 8,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "pagnn-bench",
    "pdf.fonttype": 42,
}


class Look:
    """Colour and marker of every method; those that are not in the paper take colours in the order given."""

    def __init__(self, methods: list[str]) -> None:
        others = [name for name in methods if name not in COLOURS]
        self._colours = {**COLOURS, **{name: OTHERS[k % len(OTHERS)] for k, name in enumerate(others)}}

    def colour(self, method: str) -> str:
        return self._colours.get(method, OTHERS[0])

    def marker(self, method: str) -> str:
        return MARKERS.get(method, "X")

    def width(self, method: str) -> float:
        return 2.0 if method.startswith("pagnn") else 1.2


class Tips:
    """The hover texts of a panel, by the id of the artist whose points, bars or texts show them."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}

    def add(self, *texts: str) -> str:
        """Register one text per mark of an artist, in order; returns the id to give to the artist."""
        name = f"tip{len(self.texts)}-"
        self.texts[name] = list(texts)
        return name


@dataclass(frozen=True)
class Panel:
    """One set of axes: ``draw`` fills it and registers the hover texts of its points."""

    draw: Callable[[Axes, Tips], None]


@dataclass(frozen=True)
class Figure:
    """Panels with a common legend.

    Attributes:
        name: for file names.
        caption: one or two sentences.
        legend: (text, colour, marker), marker "" for a plain bar of colour.
        columns: panels side by side in a file.
        size: width and height of a panel in inches.
        left: room for the labels on its left, in inches.
    """

    name: str
    title: str
    caption: str
    panels: list[Panel]
    legend: list[tuple[str, str, str]] = field(default_factory=list)
    columns: int = 4
    size: tuple[float, float] = (3.4, 2.6)
    left: float = 0.55


def entries_abreast(texts: Sequence[str], width: float) -> int:
    """How many legend entries go in a row of so many inches, with the entries spread evenly over the rows."""
    room = [HANDLE_INCHES + LETTER_INCHES * len(text) for text in texts]
    if sum(room) <= width:
        return len(texts)
    fitting = max(1, int(width // max(room)))  # columns of several rows are as wide as their longest entry
    return math.ceil(len(texts) / math.ceil(len(texts) / fitting))


def save_figure(figure: Figure, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write the figure, by default in all formats."""
    columns = min(figure.columns, len(figure.panels))
    rows = math.ceil(len(figure.panels) / columns)
    width, below = columns * figure.size[0], 0.0
    paths = []
    with matplotlib.rc_context(STYLE):
        sheet = Sheet()
        if figure.legend:
            abreast = entries_abreast([text for text, *_ in figure.legend], width)
            below = 0.15 + 0.2 * math.ceil(len(figure.legend) / abreast)
            handles = [_handle(*entry) for entry in figure.legend]
            sheet.legend(handles=handles, loc="lower center", ncols=abreast)
        sheet.set_size_inches(width, rows * figure.size[1] + below)
        for number, panel in enumerate(figure.panels):
            row, column = divmod(number, columns)
            corner = (column * figure.size[0], below + (rows - 1 - row) * figure.size[1])
            panel.draw(_axes(sheet, figure, *corner), Tips())
        for kind in formats:
            path = folder / f"{figure.name}.{kind}"
            # Without a date the same results give the same file.
            metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
            sheet.savefig(path, format=kind, dpi=150, metadata=metadata)
            paths.append(path)
    return paths


def _axes(sheet: Sheet, figure: Figure, x: float, y: float) -> Axes:
    """Axes whose panel has its lower left corner at (x, y) inches.

    The room for labels is fixed: letting matplotlib measure it takes longer than drawing.
    """
    (width, height), (total_width, total_height) = figure.size, sheet.get_size_inches()
    left, right, bottom, top = figure.left, 0.12, 0.45, 0.28
    inner = (width - left - right, height - bottom - top)
    return sheet.add_axes(
        (
            (x + left) / total_width,
            (y + bottom) / total_height,
            inner[0] / total_width,
            inner[1] / total_height,
        )
    )


def _handle(text: str, colour: str, marker: str) -> Line2D:
    return Line2D(
        [],
        [],
        color=colour,
        linestyle="none" if marker in ("", "paper", "*") else "-",
        marker={"": "s", "paper": "d"}.get(marker, marker),
        markerfacecolor=PAPER if marker == "paper" else colour,
        markersize=6,
        label=text,
    )


def page_svgs(figure: Figure) -> list[str]:
    """Each panel as an SVG element for a page: its colours are the page's, and its points carry ``data-tip``."""
    return [_page_svg(figure, panel) for panel in figure.panels]


def _page_svg(figure: Figure, panel: Panel) -> str:
    tips = Tips()
    with matplotlib.rc_context(STYLE):
        sheet = Sheet(figsize=figure.size)
        panel.draw(_axes(sheet, figure, 0, 0), tips)
        buffer = io.StringIO()
        sheet.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    for shade, colour in PAGE_COLOURS.items():
        svg = svg.replace(shade, colour)
    svg = re.sub(r"'DejaVu Sans'", "inherit", svg)
    for name, texts in tips.texts.items():
        svg = _with_tips(svg, name, texts)
    # Drop ids that nothing refers to: they would be repeated in every panel of the page.
    used = set(re.findall(r"#([\w.-]+)[\")]", svg))
    svg = re.sub(r' id="([\w.:-]+)"', lambda match: match[0] if match[1] in used else "", svg)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    return re.sub(r'(<svg[^>]*?) height="[^"]*"', r'\1 role="img"', svg, count=1)


def _with_tips(svg: str, name: str, texts: list[str]) -> str:
    """Give the marks of an artist their texts: the ``use`` elements after its id, or the artist itself if it is one."""
    before, identifier, after = svg.partition(f'id="{name}"')
    attributes = [f'class="tip" tabindex="0" data-tip="{escape(text)}"' for text in texts]
    if len(texts) == 1:
        return before + attributes[0] + after if identifier else svg
    for attribute in attributes:
        head, mark, after = after.partition("<use ")
        before += head + (f"{mark}{attribute} " if mark else "")
    return before + after
