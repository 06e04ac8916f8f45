"""``pagnn-bench status``: progress of the sweeps in a results folder."""

from __future__ import annotations

import os
import time

from pagnn_bench.analysis.status import read_status, render
from pagnn_bench.config.arguments import Parser, add_results, results_folder

WATCH_SECONDS = 5


def status_command(arguments: list[str]) -> int:
    """``pagnn-bench status [--results DIR] [--watch] [--all]``."""
    description = "Show the progress of the sweeps in a results folder, whichever machine they run on."
    parser = Parser(prog="pagnn-bench status", description=description)
    add_results(parser)
    parser.add_argument("--all", action="store_true", help="show every cell, finished or not")
    parser.add_argument("--watch", action="store_true", help=f"refresh every {WATCH_SECONDS} seconds")
    options = parser.parse_args(arguments)
    folder = results_folder(options.results)
    while True:
        text = render(read_status(folder), options.all)
        if options.watch and os.isatty(1):
            print("\033[H\033[2J", end="")  # clears the screen
        print(text, flush=True)
        if not options.watch:
            return 0
        time.sleep(WATCH_SECONDS)
