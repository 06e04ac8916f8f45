"""Provenance: what produced a record, in terms that mean the same on every machine.

Versions, platform and commit, but no host name, user name or path. No package is imported to find its version.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import tomllib
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pagnn_bench
from pagnn_bench.config.plugins import plugged_packages

PACKAGES = ("torch", "torch_geometric", "numpy", "scipy", "scikit-learn")

# Files that can change a number. Changed results and notes do not make a checkout dirty.
SOURCES = ("pagnn_bench", "baselines", "conf", "pyproject.toml")
GIT_TIMEOUT_SECONDS = 10

NVIDIA = Path("/proc/driver/nvidia/version")  # on Linux; nvidia-smi serves elsewhere
NVIDIA_SMI = ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
NVIDIA_TIMEOUT_SECONDS = 20


def collect_provenance(**facts: Any) -> dict[str, Any]:
    """Describe the software and the machine, now.

    Args:
        facts: what only the caller knows: device, threads, the checksum of the data. A fact with the name of a key
            that is collected here is an error (TypeError).

    Returns:
        Plain data: ``version``, ``python``, ``packages``, ``platform``, ``git``, ``time`` and the facts.
    """
    time = datetime.now(UTC).isoformat(timespec="seconds")
    root = Path(pagnn_bench.__file__).resolve().parent.parent
    return dict(**_environment(), git=git_state(root), time=time, **facts)


def _environment() -> dict[str, Any]:
    return {
        "version": pagnn_bench.__version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in (*PACKAGES, *plugged_packages())},
        "platform": {"system": platform.system(), "machine": platform.machine(), "cpus": os.cpu_count()},
    }


@cache
def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache
def nvidia_driver() -> str | None:
    """The version of the NVIDIA driver, such as 550.54.14; None where there is none. Opens no GPU."""
    try:
        text = NVIDIA.read_text(encoding="utf-8")
    except OSError:
        text = _nvidia_smi()
    version = re.search(r"(?:^|\s)(\d+\.\d+(?:\.\d+)?)(?:\s|$)", text)
    return version[1] if version else None


def _nvidia_smi() -> str:
    if shutil.which(NVIDIA_SMI[0]) is None:
        return ""
    try:
        answer = subprocess.run(NVIDIA_SMI, capture_output=True, text=True, timeout=NVIDIA_TIMEOUT_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout if answer.returncode == 0 else ""


@cache
def git_state(root: Path) -> dict[str, Any] | None:
    """Commit and dirtiness of the checkout that holds the source.

    Cached, since the code that runs is the code that was imported; later changes on disk do not matter.

    Args:
        root: the folder that holds the package ``pagnn_bench``.

    Returns:
        ``{"commit": str | None, "dirty": bool}`` (no commit before the first one); or None outside a checkout of
        pagnn-bench itself: in an installed wheel, or a copy inside another repository.
    """
    if not (root / ".git").exists() or not _is_own_source(root):
        return None
    command = ["git", "--no-optional-locks", "status", "--porcelain=v2", "--branch", "--", *SOURCES]
    # Inside a git hook these variables point to the repository of the hook, not to ours.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        answer = subprocess.run(
            command,
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=GIT_TIMEOUT_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):  # no git, not its owner, or a file system that hangs
        return None
    lines = answer.stdout.splitlines()
    commit = next(line.split()[2] for line in lines if line.startswith("# branch.oid "))
    dirty = any(not line.startswith("#") for line in lines)
    return {"commit": None if commit == "(initial)" else commit, "dirty": dirty}


def _is_own_source(root: Path) -> bool:
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        return project["project"]["name"] == "pagnn-bench"
    except (OSError, ValueError, KeyError, TypeError):
        return False
