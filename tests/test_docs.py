"""What the documents say of the committed results in numbers is so."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def write_docs(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, root / "scripts/write_docs.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=root)


@pytest.fixture
def copy(tmp_path) -> Path:
    """The pages, and what they are written from."""
    for name in ("docs", "results", "scripts"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("cells", "imputed", "runs")
        )
    shutil.copy(ROOT / "README.md", tmp_path)
    return tmp_path


def test_the_documents_are_up_to_date_but_for_a_number_that_drifted_here(copy):
    """Only the pages that are spoiled here are stale, so the others are as the results would have them."""
    pages = {copy / "docs/protocol.md": "±0.", copy / "docs/speed_tables.md": "| met |"}
    whole = {page: page.read_text(encoding="utf-8") for page in pages}
    for page, number in pages.items():
        assert number in whole[page]
        page.write_text(whole[page].replace(number, "X", 1), encoding="utf-8")
    done = write_docs(copy, "--check")
    assert done.returncode == 1, done.stdout + done.stderr
    stale = done.stdout.strip().removeprefix("stale, run scripts/write_docs.py: ").split(", ")
    assert sorted(stale) == sorted(str(page.relative_to(copy)) for page in pages)
    assert write_docs(copy).returncode == 0
    assert {page: page.read_text(encoding="utf-8") for page in pages} == whole


@pytest.mark.real_data
def test_the_dataset_cards_are_counted_so(real_root):
    command = [sys.executable, ROOT / "scripts/measure_datasets.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[0]) >= 1
