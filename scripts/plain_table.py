"""Tables as Markdown, for pages that are written from results."""

from __future__ import annotations

from pagnn_bench.analysis.tables.layout import Table
from pagnn_bench.analysis.tables.render import to_markdown


def plain_table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def body(table: Table) -> str:
    """A table without its title, since the page has its own."""
    return to_markdown(table).partition("\n\n")[2]
