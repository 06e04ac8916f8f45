"""``pagnn-bench compare``: rank the methods on a graph. Its command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pagnn_bench.config.arguments import Parser
from pagnn_bench.config.errors import RequestError

if TYPE_CHECKING:
    from pagnn_bench.analysis.ranking import Comparison

FORMATS = ("md", "csv", "json")
BESIDE_THE_RECORDS = ""  # the value of --html without a file

EPILOG = """\
  pagnn-bench compare data=custom data.path=mygraph.npz missing=natural
  pagnn-bench compare data=table data.nodes=nodes.csv data.edges=edges.csv data.label=topic --html
  pagnn-bench compare data=cora missing=type1 rate=0.5 method=mf,pagnn_n,fp masks=10
  pagnn-bench compare data=custom data.path=mygraph.npz missing=natural tune=true dry_run=true

Takes all keys of `run` (pagnn-bench run --help), for one graph. These differ:
  method=a,b,c    default: every method that suits the graph; those left out are listed with the reason
  missing=natural default if attributes are missing in the file, else as in `run`
  masks=5         incomplete graphs or splits, as in `run`; masks=1 if they could not differ
  seeds=3         network initialisations per mask
  tune=false      true chooses settings on validation data first: protocol=tuned with 8 settings per method
  protocol=paper  without the search of GCNmf's authors: protocol.tuning=null

Trials are recorded as in `run`: stop at any time, and continue with the same command.
Exit codes: 0 done; 1 something failed, the rest is ranked; 2 the request was wrong; 130 stopped.
"""


def compare_command(arguments: Sequence[str]) -> int:
    """Train what is missing, rank the methods and return the exit code."""
    options = _parser().parse_intermixed_args(_html_alone(arguments))
    from pagnn_bench.bench.document import check_writable

    check_writable(options.output, "-o")
    if options.html:
        check_writable(options.html, "--html")
    from pagnn_bench.api.comparison import compare_methods  # brings Hydra
    from pagnn_bench.api.words import checked_folder
    from pagnn_bench.cli.tables import write_text

    ending = compare_methods(options.words, checked_folder(options.config_dir))
    if ending.comparison is None:
        return ending.code
    lines = []
    if options.output is not None:
        write_text(options.output, _text(ending.comparison, options.format))
        lines = [ending.comparison.sentence, f"Ranking: {options.output}"]
    else:
        print(_text(ending.comparison, options.format), end="")
    if options.html is not None:
        lines.append(f"Page: {_page(ending.comparison, options.html, ending.results_dir)}")
    # CSV or JSON on stdout must not be followed by text.
    stream = sys.stderr if options.output is None and options.format != "md" else sys.stdout
    print(*lines, f"Records: {ending.records}", sep="\n", file=stream)
    return ending.code


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="pagnn-bench compare",
        usage="pagnn-bench compare [KEY=VALUE ...] [options]",
        description="Train every method that suits a graph, rank them, and recommend one with its certainty.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs="*", metavar="KEY=VALUE", help="as for `run`")
    parser.add_argument(
        "--html",
        nargs="?",
        const=BESIDE_THE_RECORDS,
        metavar="FILE",
        help="write a page with a table and figures (default: RESULTS_DIR/compare/NAME.html)",
    )
    parser.add_argument("--format", choices=FORMATS, default="md", help="of the ranking, %(default)s")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the ranking to a file")
    parser.add_argument("--config-dir", metavar="DIR", help="a folder with your own methods or data")
    return parser


def _html_alone(arguments: Sequence[str]) -> list[str]:
    """Allow ``--html`` before a KEY=VALUE, which argparse would take for its file."""
    following = [*arguments[1:], "-"]
    return [
        "--html=" if word == "--html" and ("=" in after or after.startswith("-")) else word
        for word, after in zip(arguments, following)
    ]


def _text(comparison: Comparison, kind: str) -> str:
    from pagnn_bench.analysis.ranking.advice import how_to_be_surer
    from pagnn_bench.analysis.tables.render import to_markdown
    from pagnn_bench.analysis.tables.selection import to_csv, to_json

    if kind == "csv":
        return to_csv(comparison.records())
    if kind == "json":
        return to_json(comparison.document())
    lines = [comparison.sentence, how_to_be_surer(comparison.ranking)]
    return "\n".join([to_markdown(comparison.table()), *filter(None, lines)]) + "\n"


def _page(comparison: Comparison, name: str, results_dir: Path) -> Path:
    """Write the page and return its path."""
    from pagnn_bench.analysis.report.comparison import write_comparison

    path = Path(name) if name else results_dir / "compare" / f"{comparison.name}.html"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_comparison(comparison, path)
    except OSError as error:
        raise RequestError(f"--html {path}: cannot be written ({error.strerror}).") from error
    return path
