"""Every script says what it does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "scripts"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py") if '__name__ == "__main__"' in path.read_text())


@pytest.mark.parametrize("name", SCRIPTS)
def test_help_tells_how_to_call_it(name):
    done = subprocess.run([sys.executable, FOLDER / name, "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert name in done.stdout
    assert done.stderr == ""


def test_a_word_that_cannot_be():
    command = [sys.executable, FOLDER / "profile_epoch.py", "method=nix"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.endswith("error: In 'config': Could not find 'method/nix'\n")
