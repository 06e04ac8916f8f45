"""Tables inside a Markdown page, rendered from the JSON documents that the page names.

    <!-- bench: ../results/bench/speed.json -->
    (the table; written here, never by hand)
    <!-- /bench -->

The path is relative to the page.
"""

from __future__ import annotations

import re
from pathlib import Path

from pagnn_bench.bench.document import load_document
from pagnn_bench.bench.layout import make_table
from pagnn_bench.errors import RequestError
from pagnn_bench.tables.render import to_markdown

BLOCK = re.compile(r"(<!-- bench: (\S+) -->\n).*?(<!-- /bench -->)", re.DOTALL)


def fill_page(text: str, folder: Path) -> str:
    """The page with all its tables rendered anew.

    Args:
        text: the page.
        folder: where it stands.
    """
    return BLOCK.sub(lambda found: f"{found[1]}\n{_table(folder / found[2])}\n{found[3]}", text)


def _table(path: Path) -> str:
    return to_markdown(make_table(load_document(path, "--page")))


def renew_page(name: str) -> int:
    """Render the tables of a page in place; how many there are."""
    path = Path(name)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RequestError(f"--page {name}: cannot be read ({error.strerror}).") from error
    blocks = len(BLOCK.findall(text))
    if not blocks:
        raise RequestError(
            f"--page {name}: has no place for a table (<!-- bench: FILE.json --> <!-- /bench -->)."
        )
    path.write_text(fill_page(text, path.parent), encoding="utf-8")
    return blocks
