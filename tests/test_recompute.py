"""Committed trials can be trained again, and come out as they were."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import fmean

import pytest

ROOT = Path(__file__).parent.parent


def recompute(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "scripts/recompute.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.real_data
def test_committed_trials_again():
    if not Path(os.environ.get("PAGNN_DATA", ""), "Cora", "raw").is_dir():
        pytest.skip("PAGNN_DATA names no folder with the real datasets")
    done = recompute("--cells", "1", "--stack", "5", "cora-type1-0.1-zero-shared")
    assert done.returncode == 0, done.stdout + done.stderr
    trials = re.findall(r"committed ([\d.]+), now ([\d.]+)", done.stdout)
    assert len(trials) > 1
    # Another processor rounds in another order, and single trials may stop at another epoch.
    assert abs(fmean(float(before) - float(after) for before, after in trials)) < 1


def test_a_device_that_there_is_not():
    done = recompute("--device", "cuda:99")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("device=cuda:99: torch sees ")
    assert len(done.stderr.splitlines()) == 1


def test_cells_that_there_are_not():
    done = recompute("no-such-cell")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "no committed cell has a batch of that size and all these words: no-such-cell\n"
