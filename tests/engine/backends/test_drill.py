"""The drill of scripts/kill_drill.py, shortened: sweeps killed with SIGKILL end up with the results of a calm one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DRILL = Path(__file__).parents[3] / "scripts" / "kill_drill.py"


@pytest.mark.parametrize("options", [("--kills", "2"), ("--kills", "1", "--together")])
def test_kills(options):
    done = subprocess.run([sys.executable, str(DRILL), *options], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "identical to the undisturbed sweep" in done.stdout
