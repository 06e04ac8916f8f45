"""``pagnn-bench collect``: all results of a folder in a few tables."""

from __future__ import annotations

import sys

from pagnn_bench.config.arguments import Parser, add_results, results_folder
from pagnn_bench.records.sealed import StoreError
from pagnn_bench.records.store import Store


def collect_command(arguments: list[str]) -> int:
    """``pagnn-bench collect [--results DIR]``: write all results of a folder into its collected tables."""
    description = "Write all results of a folder into a few tables for version control."
    parser = Parser(prog="pagnn-bench collect", description=description)
    add_results(parser)
    try:
        tables = Store(results_folder(parser.parse_args(arguments).results)).collect()
    except StoreError as error:
        print(f"pagnn-bench: {error} Earlier collected tables are unchanged.", file=sys.stderr)
        return 1
    for table in tables:
        print(table)
    if not tables:
        print("Nothing has been run yet.")
    return 0
