"""How much memory is free, and how many jobs at a time it is enough for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pagnn_bench.engine.plan import Job
from pagnn_bench.engine.workload import peak_bytes

MEMINFO = Path("/proc/meminfo")
CGROUPS = Path("/sys/fs/cgroup")
# Limit and use of a container by both versions of cgroups; inside one they are at the top.
CGROUP_FILES = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
)


def affordable_processes(jobs: Sequence[Job], wanted: int) -> int:
    """How many of these processes fit into free memory, at least one, even if the largest jobs run together."""
    free = free_bytes()
    if free is None:
        return wanted
    largest = sorted(map(peak_bytes, jobs), reverse=True)[:wanted]
    needed = 0.0
    for number, peak in enumerate(largest):
        needed += peak
        if needed > free:
            return max(1, number)
    return wanted


def free_bytes() -> float | None:
    """Available memory: of the machine, or of a container's share if that is less."""
    return min(_free(), default=None)


def _free() -> Iterator[float]:
    with suppress(OSError, StopIteration, ValueError):  # other systems have no such file
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
        yield 1024 * float(next(line.split()[1] for line in lines if line.startswith("MemAvailable:")))
    for limit, used, stat in CGROUP_FILES:
        with suppress(OSError, ValueError):  # not this version; or "max": no limit
            share = float((CGROUPS / limit).read_text()) - float((CGROUPS / used).read_text())
            yield share + _reclaimable((CGROUPS / stat).read_text())


def _reclaimable(stat: str) -> float:
    """Cached file contents, which count as used although the system drops them when memory is needed."""
    facts = dict(line.split() for line in stat.splitlines())
    return float(facts.get("total_inactive_file", facts.get("inactive_file", 0)))
