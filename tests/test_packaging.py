"""The wheel: complete, and at work in an environment and a directory that know nothing of the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from pagnn_bench import __version__

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("pagnn_bench", "conf", "baselines")
NOT_CODE = shutil.ignore_patterns("__pycache__")

pytestmark = pytest.mark.packaging


def call(*command: str | Path, cwd: Path) -> str:
    """Run a command as a stranger would, without the variables that lead back to this checkout; its output."""
    strange = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PAGNN"))}
    answer = subprocess.run(command, cwd=cwd, env=strange, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy: setuptools works inside the source tree, where leftovers could pass for sources."""
    copy = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        shutil.copytree(ROOT / name, copy / name, ignore=NOT_CODE)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    call(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist", ".", cwd=copy)
    (built,) = (copy / "dist").iterdir()
    return built


@pytest.fixture(scope="module")
def binaries(wheel, tmp_path_factory) -> Path:
    """The bin folder of a new environment with the wheel in it, and the dependencies of the running one in reach.

    They come by a .pth file; those that lie in the folder it names are not read again, the one of an editable
    install among them, so pagnn_bench itself can only be the wheel's.
    """
    environment = tmp_path_factory.mktemp("environment")
    call(sys.executable, "-m", "venv", "--without-pip", environment, cwd=environment)
    python = environment / "bin" / "python"
    here = {"base": str(environment), "platbase": str(environment)}
    packages = Path(sysconfig.get_path("purelib", "venv", vars=here))
    shared = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
    (packages / "dependencies.pth").write_text("\n".join(sorted(shared)) + "\n")
    install = ("install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check")
    call(sys.executable, "-m", "pip", "--python", python, *install, wheel, cwd=environment)
    found = call(python, "-c", "import pagnn_bench; print(pagnn_bench.__file__)", cwd=environment)
    assert Path(found).is_relative_to(packages)
    return python.parent


def test_the_wheel_holds_every_file_and_one_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    assert {name.partition("/")[0] for name in inside} == {
        "pagnn_bench",
        f"pagnn_bench-{__version__}.dist-info",
    }, "conf and baselines are nobody's at the top level"
    files = {
        path.relative_to(ROOT) for name in SOURCES for path in (ROOT / name).rglob("*") if path.is_file()
    }
    expected = {
        str(path if path.parts[0] == "pagnn_bench" else Path("pagnn_bench", path))
        for path in files
        if "__pycache__" not in path.parts
    }
    assert expected <= inside
    for data in (
        "analysis/paper.csv",
        "conf/config.yaml",
        "data/checksums.json",
        "data/cora_planetoid_order.txt",
    ):
        assert f"pagnn_bench/{data}" in inside


def test_the_installed_command_works_in_any_directory(binaries, tmp_path):
    command = binaries / "pagnn-bench"
    assert call(command, "--version", cwd=tmp_path) == f"pagnn-bench {__version__}\n"
    assert "pagnn_n" in call(command, "list", cwd=tmp_path)
    out = call(command, "run", "experiment=smoke", "threads=1", cwd=tmp_path)
    assert out.startswith("1 cell, 2 trials: 0 done already, 2 to train.")
    assert [path.name for path in tmp_path.iterdir()] == ["results"]
    assert len(list(tmp_path.glob("results/cells/*/mask0-seeds0..1-*.json"))) == 1
