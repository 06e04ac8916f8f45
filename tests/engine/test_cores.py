"""As many threads as there are cores to use, on every system, and as many as were asked for where somebody asked."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from pagnn_bench.engine import cores


@pytest.fixture(autouse=True)
def threads_as_before():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_cores_are_those_that_this_process_may_use():
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system cannot bind a process to cores")
    program = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
        "from pagnn_bench.engine.cores import usable_cores; print(usable_cores())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_systems_without_affinity(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert cores.usable_cores() >= 1


@pytest.mark.parametrize(
    ("threads", "of_torch", "usable", "expected"),
    [
        (None, 64, 2, 2),  # a container's share of a large machine
        (None, 1, 8, 1),  # OMP_NUM_THREADS=1, which torch has read
        (3, 64, 2, 3),  # threads=3
    ],
)
def test_threads(threads, of_torch, usable, expected, monkeypatch):
    torch.set_num_threads(of_torch)
    monkeypatch.setattr(cores, "usable_cores", lambda: usable)
    assert cores.set_threads(threads) == expected == torch.get_num_threads()
