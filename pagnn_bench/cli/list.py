"""``pagnn-bench list``: the available choices."""

from __future__ import annotations

from collections.abc import Sequence

from pagnn_bench.config.arguments import Parser
from pagnn_bench.config.catalogue import GROUPS, check_folder, choices
from pagnn_bench.config.errors import RequestError


def list_command(arguments: Sequence[str]) -> int:
    """``list``: one line per choice, read from the configuration files."""
    parser = Parser(prog="pagnn-bench list", description="List the choices of every group, one per line.")
    parser.add_argument(
        "group", nargs="?", metavar="GROUP", help=f"one of {', '.join(GROUPS)} (default: all)"
    )
    parser.add_argument("--config-dir", metavar="DIR", help="a folder with your own methods or data")
    options = parser.parse_args(arguments)
    if options.group is not None and options.group not in GROUPS:
        raise RequestError(f"list {options.group}: choose one of {', '.join(GROUPS)}, or none for all.")
    if options.config_dir is not None:
        check_folder(options.config_dir)
    for group in [options.group] if options.group else GROUPS:
        print(f"{group}=")
        found = choices(group, options.config_dir)
        width = max(map(len, found), default=0)
        for name, description in found.items():
            print(f"  {name:<{width}}  {description}".rstrip())
    return 0
