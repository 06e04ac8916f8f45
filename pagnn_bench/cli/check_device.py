"""``pagnn-bench check-device``: its command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pagnn_bench.bench.document import check_writable, save_document
from pagnn_bench.config.arguments import Parser, add_results, results_folder

FILE = "check-device.json"
DESCRIPTION = """\
Check that a GPU computes what the CPU computes, in about five minutes and offline: every method for a few epochs on
both with the same random numbers, the same training twice, committed trials of Cora, times and peak memory. Ends with
PASS (exit code 0) or FAIL (1). Without a GPU, checks the CPU against itself.
"""


def check_device_command(arguments: Sequence[str]) -> int:
    """Check a device and return the exit code."""
    options = _parser().parse_args(arguments)
    check_writable(options.output, "-o")
    results = results_folder(options.results)

    from pagnn_bench.analysis.tables.render import to_markdown
    from pagnn_bench.check.layout import tables, verdict
    from pagnn_bench.check.run import Check
    from pagnn_bench.engine.cores import set_threads
    from pagnn_bench.engine.device import pick_device

    device, threads = pick_device(options.device), set_threads(None)
    document = {}
    for document in Check(device, results, options.quick, threads, _print_progress).run():
        save_document(document, options.output)
    for table in tables(document):
        print(to_markdown(table))
    print(verdict(document))
    print(
        f"All numbers are in {options.output}. It holds no paths or host names, so you can attach it to an issue."
    )
    return 1 if document["faults"] else 0


def _parser() -> Parser:
    parser = Parser(prog="pagnn-bench check-device", description=DESCRIPTION)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ... (%(default)s)")
    parser.add_argument(
        "--quick", action="store_true", help="one missing type, one set of trials, no large graph"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", default=FILE, help="the numbers as JSON (%(default)s)"
    )
    add_results(parser)
    return parser


def _print_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
