"""What can be chosen, read from the configuration files themselves (no Hydra, so it answers at once)."""

from __future__ import annotations

from importlib.resources import files

import yaml

from pagnn_bench.errors import RequestError

GROUPS = ("data", "missing", "method", "protocol", "experiment", "backend")


def choices(group: str) -> dict[str, str]:
    """Name → one-line description of every file of a configuration group, sorted by name."""
    found = {}
    for file in files("pagnn_bench.conf").joinpath(group).iterdir():
        if file.name.endswith(".yaml"):
            content = yaml.safe_load(file.read_text(encoding="utf-8"))
            # An experiment sets keys of all groups, so its own name and description stand under `experiment`.
            about = content["experiment"] if group == "experiment" else content
            found[file.name.removesuffix(".yaml")] = about["description"]
    return dict(sorted(found.items()))


def list_command(arguments: list[str]) -> int:
    """``list``: one line per choice, read from the configuration files."""
    if arguments in (["-h"], ["--help"]):
        print(f"pagnn-bench list [GROUP]: what can be chosen; GROUP is one of {', '.join(GROUPS)}.")
        return 0
    if len(arguments) > 1 or any(group not in GROUPS for group in arguments):
        raise RequestError(f"list {' '.join(arguments)}: name one group or none: {', '.join(GROUPS)}.")
    for group in arguments or GROUPS:
        print(f"{group}=")
        found = choices(group)
        width = max(map(len, found), default=0)
        for name, description in found.items():
            print(f"  {name:<{width}}  {description}")
    return 0
