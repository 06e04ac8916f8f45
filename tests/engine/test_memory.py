"""Memory that is free, by files as Linux writes them, and how many jobs fit into it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from pagnn_bench.engine import memory

MEMINFO = {"meminfo": "MemTotal:  16 kB\nMemAvailable:  8 kB\n"}
VERSION_2 = {
    "memory.max": "5000\n",
    "memory.current": "3000\n",
    "memory.stat": "anon 9\ninactive_file 1000\n",
}
VERSION_1 = {
    "memory/memory.limit_in_bytes": "4000",
    "memory/memory.usage_in_bytes": "3000",
    "memory/memory.stat": "inactive_file 1\ntotal_inactive_file 500\n",
}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        (MEMINFO, 8 * 1024),
        ({**MEMINFO, **VERSION_2}, 3000),
        ({**MEMINFO, **VERSION_1}, 1500),
        ({**MEMINFO, **VERSION_2, "memory.max": "max\n"}, 8 * 1024),
        ({**VERSION_2, "memory.max": "max\n"}, None),
    ],
    ids=["another system", "machine", "cgroups 2", "cgroups 1", "no limit", "nothing known"],
)
def test_free_memory(tmp_path: Path, monkeypatch, files, expected):
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    assert memory.free_bytes() == expected


@pytest.mark.parametrize(
    ("free", "expected"), [(None, 3), (math.inf, 3), (90, 3), (89, 2), (70, 2), (69, 1), (1, 1)]
)
def test_the_largest_jobs_may_meet(monkeypatch, free, expected):
    monkeypatch.setattr(memory, "free_bytes", lambda: free)
    monkeypatch.setattr(memory, "peak_bytes", float)
    assert memory.affordable_processes([10, 20, 40, 30], wanted=3) == expected
