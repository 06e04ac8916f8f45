"""`make setup` with a Python that only takes down what it was asked to do."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PYTHON = """#!/bin/sh
echo "$0 $*" >> calls
if [ "$1 $2" = "-m venv" ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; fi
"""

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="no make here")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    for place in (tmp_path, tmp_path / "mine/bin"):
        place.mkdir(parents=True, exist_ok=True)
        (place / "python").write_text(PYTHON)
        (place / "python").chmod(0o755)
    return tmp_path


def make(project: Path, *words: str) -> tuple[int, list[str], str]:
    """Exit code, what Python was called for besides its version, and stderr."""
    command = ["make", "setup", "PYTHON=./python", *words]
    # Nothing else of the environment: `make test EXTRAS=...` puts its flags and its variables there.
    done = subprocess.run(
        command, cwd=project, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True
    )
    calls = (project / "calls").read_text().splitlines() if (project / "calls").exists() else []
    (project / "calls").unlink(missing_ok=True)
    return done.returncode, [call for call in calls if " -m " in call], done.stderr


def test_the_default_is_made_and_pinned_once(project):
    code, [made, installed], _ = make(project)
    assert code == 0
    assert made == "./python -m venv .venv"
    assert installed.startswith(".venv/bin/python -m pip install")
    assert installed.endswith("-c constraints.txt -e .[dev]")
    assert make(project)[1] == []


def test_an_environment_that_exists_is_used_and_keeps_its_versions(project):
    code, [installed], _ = make(project, "VENV=mine", "EXTRAS=dev,ray")
    assert code == 0
    assert installed.startswith("mine/bin/python -m pip install")
    assert installed.endswith("-e .[dev,ray]")
    assert "constraints" not in installed
    assert make(project, "VENV=mine", "EXTRAS=dev,ray")[1] == []
    assert not (project / ".venv").exists()


def test_clones_that_share_an_environment_do_not_run_each_others_code(project):
    other = project / "other"
    other.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, other)
    shared = f"VENV={project / 'mine'}"
    for clone in (project, other, project):
        assert len(make(clone, shared)[1]) == 1
        assert make(clone, shared)[1] == []


def test_one_that_does_not_exist_is_refused_in_a_sentence(project):
    code, calls, message = make(project, "VENV=yours")
    assert (code, calls) == (2, [])
    assert message.startswith("VENV=yours: there is no yours/bin/python; give an environment that exists.")


def test_a_python_that_is_too_old_is_refused_before_anything_is_made(project):
    old = (
        "#!/bin/sh\nexec python3 -c \"import sys; sys.version_info = (3, 10); sys.argv = ['-c', '$3']; $2\"\n"
    )
    (project / "python").write_text(old)
    code, calls, message = make(project)
    assert (code, calls) == (2, [])
    assert "pagnn-bench needs Python 3.11, 3.12 or 3.13, but ./python is 3.10; try: make PYTHON=" in message
