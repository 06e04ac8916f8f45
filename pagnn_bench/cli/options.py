"""Options that several commands share."""

from __future__ import annotations

import argparse

from pagnn_bench.config.arguments import add_results


def add_results_options(parser: argparse.ArgumentParser) -> None:
    """What all reading commands share."""
    add_results(parser)
    parser.add_argument(
        "--protocol",
        metavar="NAME",
        help="show this protocol (default: paper where there is one); NAME[key=value] where settings differ",
    )
