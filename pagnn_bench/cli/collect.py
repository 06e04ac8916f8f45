"""``pagnn-bench collect``: all results of a folder in a few tables."""

from __future__ import annotations

import sys

from pagnn_bench.config.arguments import Parser, add_results, results_folder
from pagnn_bench.records.sealed import StoreError
from pagnn_bench.records.store import Store


def collect_command(arguments: list[str]) -> int:
    """``pagnn-bench collect [--results DIR]``: write all results of a folder into its collected tables."""
    text = "Write all results of a folder into its collected tables, fit to be committed."
    parser = Parser(prog="pagnn-bench collect", description=text)
    add_results(parser)
    try:
        tables = Store(results_folder(parser.parse_args(arguments).results)).collect()
    except StoreError as error:
        print(f"pagnn-bench: {error} What was collected before is still there.", file=sys.stderr)
        return 1
    for table in tables:
        print(table)
    if not tables:
        print("Nothing has been run yet.")
    return 0
