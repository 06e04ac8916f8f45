"""The available choices, read from the configuration files themselves (without Hydra, so it is quick)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.plugins import PACKAGED, plug_ins

GROUPS = ("data", "missing", "method", "protocol", "experiment", "backend")


def choices(group: str, folder: str | None = None) -> dict[str, str]:
    """Name → one-line description of every choice of a configuration group, ours and plug-ins, sorted by name.

    Args:
        group: one of ``GROUPS``.
        folder: the user's own choices (``--config-dir``), which need no description.
    """
    described = {name: str(content.get("description", "")) for name, content in plug_ins(group).items()}
    for root in (PACKAGED, *([Path(folder)] if folder else [])):
        for file in root.joinpath(group).glob("*.yaml"):
            content = _read(file)
            # An experiment sets keys of all groups, so its own name and description are under `experiment`.
            about = content.get("experiment") or {} if group == "experiment" else content
            described[file.stem] = str(about.get("description", ""))
    return dict(sorted(described.items()))


def _read(file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(_bytes(file).decode("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RequestError(f"--config-dir: {file} is not YAML ({' '.join(str(error).split())}).") from error
    return content if isinstance(content, dict) else {}


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise RequestError(f"--config-dir: {file} cannot be read ({error.strerror}).") from error


def check_folder(folder: str) -> None:
    """Refuse a ``--config-dir`` that does not exist, or that changes one of our files: Hydra would use ours."""
    if not os.path.isdir(folder):
        raise RequestError(f"--config-dir {folder}: there is no such folder.")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise RequestError(f"--config-dir {folder}: the folder may not be read.")
    for ours in sorted(PACKAGED.rglob("*.yaml")):
        theirs = Path(folder, ours.relative_to(PACKAGED))
        if os.path.isfile(theirs) and _bytes(theirs) != ours.read_bytes():
            raise RequestError(
                f"--config-dir {folder}: {ours.relative_to(PACKAGED)} has the name of a file of pagnn-bench, which "
                "would be used in its place; give it a name of its own."
            )
