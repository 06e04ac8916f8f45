"""``pagnn-bench report``: one page that shows and explains all results."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from pathlib import Path

from pagnn_bench.analysis.report.page import write_report
from pagnn_bench.analysis.tables.selection import choose_protocol, read_results
from pagnn_bench.cli.options import add_results_options, nothing_run
from pagnn_bench.config.arguments import Parser, results_folder
from pagnn_bench.config.errors import RequestError


def report_command(arguments: Sequence[str]) -> int:
    """Write the page, print its path and return the exit code."""
    parser = Parser(prog="pagnn-bench report", description="One page that shows and explains all results.")
    parser.add_argument("-o", "--output", metavar="DIR", help="folder to write to (default: RESULTS/report)")
    parser.add_argument("--open", action="store_true", help="show the page in the browser")
    add_results_options(parser)
    options = parser.parse_args(arguments)
    source = results_folder(options.results)
    if not source.is_dir():  # the default folder before the first run
        print(nothing_run(source))
        return 0
    results = read_results(options.results)
    protocol = choose_protocol(results, options.protocol)
    folder = Path(options.output or source / "report")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        page = write_report(results, protocol, folder)
    except OSError as error:
        raise RequestError(f"-o {folder}: cannot be written ({error.strerror}).") from error
    print(f"Report: {page}")
    if options.open:
        webbrowser.open(page.resolve().as_uri())
    return 0
