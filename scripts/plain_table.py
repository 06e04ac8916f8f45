"""A table of texts as Markdown, for pages generated from results."""

from __future__ import annotations


def plain_table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
