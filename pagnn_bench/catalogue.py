"""What can be chosen, read from the configuration files themselves (no Hydra, so it answers at once)."""

from __future__ import annotations

from importlib.resources import files

import yaml

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
