"""The machine behind the times, without host name, user name or path."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagnn_bench.config.text import count
from pagnn_bench.engine.cores import usable_cores
from pagnn_bench.records.provenance import collect_provenance

if TYPE_CHECKING:
    import torch


def machine_facts(threads: int, device: torch.device) -> dict[str, Any]:
    """CPU, cores, memory and load at this moment, and what a record of a trial says about device and software."""
    from pagnn_bench.engine.device import device_facts

    return {
        "cpu": cpu_model(),
        "usable_cores": usable_cores(),
        "memory_gb": memory_gb(),
        "load": _load(),
        **collect_provenance(**device_facts(device), threads=threads),
    }


def describe_machine(machine: dict[str, Any]) -> str:
    """One sentence about hardware and software."""
    git, packages = machine.get("git") or {}, machine.get("packages", {})
    gpu = machine.get("gpu")
    parts = [
        *([gpu["name"], f"driver {gpu['driver']}", f"CUDA {gpu['cuda']}"] if gpu else []),
        machine["cpu"],
        count(machine["usable_cores"], "core"),
        *([count(machine["threads"], "thread")] if machine.get("threads") else []),
        *([f"{machine['memory_gb']:g} GB"] if machine.get("memory_gb") else []),
        *(f"{name} {packages[name]}" for name in ("torch", "torch_geometric") if packages.get(name)),
        *(
            [f"commit {git['commit'][:10]}{' and changes' if git['dirty'] else ''}"]
            if git.get("commit")
            else []
        ),
        *([machine["time"][:10]] if machine.get("time") else []),
    ]
    return f"Measured on: {', '.join(parts)}."


def cpu_model() -> str:
    """The name of the processor, as the kernel reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def memory_gb() -> float | None:
    """Physical memory in GB."""
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError, AttributeError):
        return None


def _load() -> float | None:
    """Load average of the last minute: above 0.5 before a measurement, the machine was not idle."""
    try:
        return round(os.getloadavg()[0], 2)
    except (OSError, AttributeError):
        return None
