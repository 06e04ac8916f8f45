"""Options that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path

from pagnn_bench.config.arguments import add_results


def add_results_options(parser: argparse.ArgumentParser) -> None:
    """What all reading commands share."""
    add_results(parser)
    parser.add_argument(
        "--protocol",
        metavar="NAME",
        help="show this protocol (default: paper where there is one); NAME[key=value] where settings differ",
    )


def nothing_run(folder: str | Path) -> str:
    """What to say of a folder without results."""
    return (
        f"Nothing has been run yet: there are no results in {folder}. Try: pagnn-bench run experiment=smoke"
    )
