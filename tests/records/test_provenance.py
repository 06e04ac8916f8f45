"""Provenance: complete, impersonal, and never about somebody else's repository."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path

import pytest

import pagnn_bench
from pagnn_bench.records import provenance
from pagnn_bench.records.provenance import collect_provenance, git_state

ROOT = Path(pagnn_bench.__file__).resolve().parent.parent


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(autouse=True)
def _fresh_cache(monkeypatch):
    for variable in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(variable, raising=False)
    git_state.cache_clear()
    yield
    git_state.cache_clear()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clean repository that looks like this project's."""
    root = tmp_path / "checkout"
    (root / "pagnn_bench").mkdir(parents=True)
    (root / "pyproject.toml").write_text('[project]\nname = "pagnn-bench"\n')
    (root / "pagnn_bench" / "cell.py").write_text("x = 1\n")
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "first")
    return root


def test_names_versions_platform_and_facts():
    collected = collect_provenance(device="cpu", threads=2, data_sha256="ab")
    assert collected["version"] == pagnn_bench.__version__
    assert collected["python"] == platform.python_version()
    assert collected["packages"]["torch"] == metadata.version("torch")
    assert set(collected["packages"]) == {"torch", "torch_geometric", "numpy", "scipy", "scikit-learn"}
    assert collected["platform"]["machine"] == platform.machine()
    assert (collected["device"], collected["threads"], collected["data_sha256"]) == ("cpu", 2, "ab")
    assert json.loads(json.dumps(collected, allow_nan=False)) == collected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.82.01  Mon Oct 25 22:48:29 UTC 2021\n"
            "GCC version:  gcc version 9.4.0 (Ubuntu 9.4.0-1ubuntu1~20.04.2)\n",
            "470.82.01",
        ),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35  Release Build  (dvs)\n", "560.35"),
        ("what is this?", None),
    ],
)
def test_the_driver_of_a_gpu(tmp_path, monkeypatch, line, expected):
    (tmp_path / "version").write_text(line)
    monkeypatch.setattr(provenance, "NVIDIA", tmp_path / "version")
    provenance.nvidia_driver.cache_clear()
    assert provenance.nvidia_driver() == expected
    provenance.nvidia_driver.cache_clear()


@pytest.mark.parametrize(
    ("answer", "expected"), [("echo 572.16", "572.16"), ("echo broken; exit 9", None), (None, None)]
)
def test_the_driver_where_only_nvidia_smi_knows(tmp_path, monkeypatch, answer, expected):
    monkeypatch.setattr(provenance, "NVIDIA", tmp_path / "none")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(provenance, "NVIDIA_SMI", ("made-up-smi",))
    if answer:
        (tmp_path / "made-up-smi").write_text(f"#!/bin/sh\n{answer}\n")
        (tmp_path / "made-up-smi").chmod(0o755)
    provenance.nvidia_driver.cache_clear()
    assert provenance.nvidia_driver() == expected
    provenance.nvidia_driver.cache_clear()


def test_time_is_utc_and_now():
    time = datetime.fromisoformat(collect_provenance()["time"])
    assert time.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - time) < timedelta(minutes=1)


def test_a_fact_cannot_hide_what_was_collected():
    with pytest.raises(TypeError, match="version"):
        collect_provenance(version="9.9")


def test_tells_nothing_about_host_user_or_places(monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: pytest.fail("the host name was asked for"))
    collected = collect_provenance()
    assert set(collected) == {"version", "python", "packages", "platform", "git", "time"}
    assert set(collected["platform"]) == {"system", "machine", "cpus"}
    assert "/" not in json.dumps(collected)


def test_an_absent_package_has_no_version(monkeypatch):
    monkeypatch.setattr(provenance, "PACKAGES", ("no-such-package-anywhere",))
    assert collect_provenance()["packages"] == {"no-such-package-anywhere": None}


def test_imports_no_package_to_learn_its_version():
    code = (
        "import sys; from pagnn_bench.records.provenance import collect_provenance; collect_provenance()\n"
        "assert not {'torch', 'torch_geometric', 'numpy', 'scipy', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_commit_of_a_clean_checkout(checkout):
    assert git_state(checkout) == {"commit": git(checkout, "rev-parse", "HEAD"), "dirty": False}


@pytest.mark.parametrize(
    ("changed", "dirty"),
    [
        ("pagnn_bench/cell.py", True),
        ("pagnn_bench/new.py", True),
        ("pyproject.toml", True),
        ("conf/method/new.yaml", True),
        ("results/new.json", False),
        ("notes.txt", False),
    ],
)
def test_only_what_can_change_a_number_makes_it_dirty(checkout, changed, dirty):
    path = checkout / changed
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write("# changed\n")
    assert git_state(checkout)["dirty"] is dirty


def test_a_staged_change_is_dirty(checkout):
    (checkout / "pagnn_bench" / "cell.py").write_text("x = 2\n")
    git(checkout, "add", ".")
    assert git_state(checkout)["dirty"] is True


def test_a_repository_without_commits(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "pagnn-bench"\n')
    git(tmp_path, "init", "--quiet")
    assert git_state(tmp_path) == {"commit": None, "dirty": True}


@pytest.mark.parametrize("pyproject", ['[project]\nname = "other"\n', "[tool]\n", "no toml", None])
def test_a_repository_of_another_project_is_not_ours(checkout, pyproject):
    (checkout / "pyproject.toml").unlink()
    if pyproject is not None:
        (checkout / "pyproject.toml").write_text(pyproject)
    assert git_state(checkout) is None


def test_a_copy_inside_a_foreign_repository_is_no_checkout(checkout):
    copy = checkout / "vendored"
    copy.mkdir()
    (copy / "pyproject.toml").write_text('[project]\nname = "pagnn-bench"\n')
    assert git_state(copy) is None


def test_an_installed_wheel_has_no_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(pagnn_bench, "__file__", str(tmp_path / "site-packages/pagnn_bench/__init__.py"))
    assert collect_provenance()["git"] is None


def test_neither_the_current_directory_nor_git_variables_lead_elsewhere(checkout, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    git(elsewhere, "init", "--quiet")
    git(elsewhere, "commit", "--quiet", "--allow-empty", "-m", "foreign")
    expected = git(checkout, "rev-parse", "HEAD")
    assert git(elsewhere, "rev-parse", "HEAD") != expected
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("GIT_DIR", str(elsewhere / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(elsewhere))
    assert git_state(checkout)["commit"] == expected


@pytest.mark.parametrize(
    "trouble",
    [
        FileNotFoundError("git"),
        subprocess.TimeoutExpired("git", 10),
        subprocess.CalledProcessError(128, "git"),
    ],
)
def test_trouble_with_git_is_no_trouble(checkout, monkeypatch, trouble):
    def run(*_, **options):
        assert options["timeout"]
        raise trouble

    monkeypatch.setattr(subprocess, "run", run)
    assert git_state(checkout) is None


def test_git_is_asked_once(checkout, monkeypatch):
    first = git_state(checkout)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("git was asked again"))
    assert git_state(checkout) == first
