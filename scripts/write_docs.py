"""Write the measured parts of the documents from results/collected, so that they match the results.

    python scripts/write_docs.py           # write them
    python scripts/write_docs.py --check   # exit code 1 and the names of the files that differ

A part lies between ``<!-- measured: NAME -->`` and ``<!-- end -->``; the rest is written by hand. NAME is one of PARTS
in measured_parts.py, or a JSON file of ``pagnn-bench bench``, relative to the page. Handwritten text contains no number
that new results could make wrong.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from measured_parts import PARTS

from pagnn_bench.analysis.figures.accuracy import accuracy_figure
from pagnn_bench.analysis.figures.canvas import Figure, save_figure
from pagnn_bench.analysis.figures.decay import decay_figure
from pagnn_bench.analysis.paper import METHODS
from pagnn_bench.analysis.tables.render import to_markdown
from pagnn_bench.analysis.tables.results import Results, load_results
from pagnn_bench.bench.document import load_document
from pagnn_bench.bench.layout import make_table
from pagnn_bench.records.store import Store

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = (
    "README.md",
    "docs/protocol.md",
    "docs/fidelity.md",
    "docs/datasets.md",
    "docs/reproduction.md",
    "docs/field.md",
    "docs/performance.md",
    "docs/speed_tables.md",
)
MARKED = re.compile(r"(<!-- measured: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    results = _collected()
    written = {name: partial(_document, results, ROOT / name) for name in DOCUMENTS}
    stale = []
    drawn = {name: partial(_svg, draw, results) for name, draw in FIGURES.items()}
    for name, write in {**written, **drawn}.items():
        path = ROOT / name
        new = write()
        if not path.exists() or path.read_text(encoding="utf-8") != new:
            stale.append(name)
            if not check:
                path.write_text(new, encoding="utf-8")
    if stale:
        print(f"{'stale, run scripts/write_docs.py' if check else 'written'}: {', '.join(stale)}")
    return int(check and bool(stale))


def _collected() -> Results:
    """The committed results; trials in batch files count once they are collected."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "results/collected", Path(folder, "collected"))
        return load_results(Store(folder))


def _document(results: Results, path: Path) -> str:
    """A page with its marked parts filled in."""
    return MARKED.sub(partial(_written, results, path.parent), path.read_text(encoding="utf-8"))


def _accuracy(results: Results) -> Figure | None:
    """The paper's methods as published, our numbers and theirs."""
    return accuracy_figure([result for result in results.under("paper") if result.key.method in METHODS])


FIGURES: dict[str, Callable[[Results], Figure | None]] = {
    "docs/measured/accuracy.svg": _accuracy,
    "docs/measured/weight-decay.svg": decay_figure,
}


def _svg(draw: Callable[[Results], Figure | None], results: Results) -> str:
    figure = draw(results)
    assert figure is not None
    with tempfile.TemporaryDirectory() as folder:
        [drawn] = save_figure(figure, Path(folder), ("svg",))
        return drawn.read_text(encoding="utf-8")


def _written(results: Results, folder: Path, part: re.Match[str]) -> str:
    """One marked part, filled in."""
    begin, name, end = part.groups()
    measured = name.endswith(".json")
    text = to_markdown(make_table(load_document(folder / name, name))) if measured else PARTS[name](results)
    return f"{begin}\n{text.strip()}\n\n{end}"


if __name__ == "__main__":
    sys.exit(main())
