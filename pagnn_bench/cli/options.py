"""Options that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path

from pagnn_bench.config.arguments import add_results


def add_results_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the commands that read results."""
    add_results(parser)
    parser.add_argument(
        "--protocol",
        metavar="NAME",
        help="show this protocol (default: paper if recorded); NAME[key=value] for changed settings",
    )


def nothing_run(folder: str | Path) -> str:
    """The message for a folder without results."""
    return f"Nothing has been run yet: {folder} holds no results. Try: pagnn-bench run experiment=smoke"
