"""The measured parts of the documents are those of the committed results."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def write_docs(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, root / "scripts/write_docs.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=root)


def test_the_documents_are_up_to_date():
    done = write_docs(ROOT, "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_number_that_drifted_is_noticed_and_put_right(tmp_path):
    for name in ("docs", "results", "scripts"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("cells", "imputed", "runs")
        )
    shutil.copy(ROOT / "README.md", tmp_path)
    pages = {tmp_path / "docs/protocol.md": "±0.", tmp_path / "docs/performance.md": "| met |"}
    whole = {page: page.read_text(encoding="utf-8") for page in pages}
    for page, number in pages.items():
        assert number in whole[page]
        page.write_text(whole[page].replace(number, "X", 1), encoding="utf-8")
    done = write_docs(tmp_path, "--check")
    assert done.returncode == 1
    assert all(page.name in done.stdout for page in pages)
    assert write_docs(tmp_path).returncode == 0
    assert {page: page.read_text(encoding="utf-8") for page in pages} == whole
