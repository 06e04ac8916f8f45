"""``pagnn-bench status``: how far the sweeps of a results folder have come."""

from __future__ import annotations

import os
import time

from pagnn_bench.analysis.status import read_status, render
from pagnn_bench.config.arguments import Parser, add_results, results_folder

WATCH_SECONDS = 5


def status_command(arguments: list[str]) -> int:
    """``pagnn-bench status [--results DIR] [--watch] [--all]``."""
    text = "How far the sweeps of a results folder have come, on whatever machine they run."
    parser = Parser(prog="pagnn-bench status", description=text)
    add_results(parser)
    parser.add_argument(
        "--all", action="store_true", help="every cell, finished or not, however many there are"
    )
    parser.add_argument("--watch", action="store_true", help=f"look again every {WATCH_SECONDS} seconds")
    options = parser.parse_args(arguments)
    folder = results_folder(options.results)
    while True:
        text = render(read_status(folder), options.all)
        if options.watch and os.isatty(1):
            print("\033[H\033[2J", end="")  # an empty screen
        print(text, flush=True)
        if not options.watch:
            return 0
        time.sleep(WATCH_SECONDS)
