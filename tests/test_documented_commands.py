"""Every ``pagnn-bench`` command that a document or the Makefile names is one that the command line takes."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from pagnn_bench.cli import COMMANDS, main

ROOT = Path(__file__).parent.parent
DOCUMENTS = ("README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
FENCED = re.compile(r"^```(?:bash|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)
CALLED = re.compile(rf"(?:^|[ /])pagnn-bench (?:{'|'.join(COMMANDS)})\b")


def commands_in(text: str) -> list[list[str]]:
    """The words behind ``pagnn-bench`` in every command of some shell text, without comments."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        for part in filter(CALLED.search, re.split(r"&&|;|\|", line)):
            words = shlex.split(part, comments=True)
            names = [word.rpartition("/")[2] for word in words]
            if "pagnn-bench" in names:
                found.append(words[names.index("pagnn-bench") + 1 :])
    return found


def documented() -> list[tuple[str, list[str]]]:
    found = []
    for name in DOCUMENTS:
        blocks = FENCED.findall((ROOT / name).read_text(encoding="utf-8"))
        found += [(name, words) for words in commands_in("\n".join(blocks))]
    return found


def unique(commands: list[tuple[str, list[str]]]) -> list:
    """Each command once, named by document and words."""
    return [
        pytest.param(words, id=f"{name}: {' '.join(words)}")
        for name, words in {tuple(words): (name, words) for name, words in reversed(commands)}.values()
    ]


RUNS = [(name, words) for name, words in documented() if words[0] == "run"]
OTHERS = [(name, words) for name, words in documented() if words[0] != "run"]


def test_commands_were_found():
    assert len(RUNS) > 15
    assert {words[0] for _, words in OTHERS} >= {"tables", "report", "status", "data", "bench"}


@pytest.mark.parametrize("words", unique(RUNS))
def test_a_documented_run_can_be_planned(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("mygraph.npz", features=np.eye(4), edges=[[0, 1, 2], [1, 2, 3]], labels=[0, 1, 0, 1])
    for name in ("digits.npz", "mygraph.pt", "mygraph.graphml", "nodes.csv", "edges.csv"):
        Path(name).write_text("a plan knows files by their content and reads nothing of it")
    if any(word.startswith("--") for word in words):
        assert main(words) == 0  # shows the configuration or the help
        return
    # An experiment is planned at one of its rates: the others differ in nothing that a plan could trip over.
    chooses_rate = any(word.startswith("rate=") for word in words)
    narrow = [] if chooses_rate or "experiment=" not in " ".join(words) else ["rate=0.5"]
    assert main([*words, *narrow, "dry_run=true"]) == 0
    assert re.search(r"\d+ trials?: ", capsys.readouterr().out)


@pytest.mark.parametrize("words", unique(OTHERS))
def test_a_documented_command_has_these_options(words, capsys):
    assert words[0] in COMMANDS
    with suppress(SystemExit):  # how argparse ends
        main([words[0], "--help"])
    help_text = capsys.readouterr().out
    assert all(word.partition("=")[0] in help_text for word in words[1:] if word.startswith("-"))


@pytest.mark.skipif(shutil.which("make") is None, reason="no make here")
def test_make_fill_covers_both_tables_and_the_controls(tmp_path, monkeypatch, capsys):
    shown = subprocess.run(
        ["make", "--dry-run", "fill", "DEVICE=cpu"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    monkeypatch.chdir(tmp_path)
    for words in commands_in(shown):
        if words[0] == "run":
            assert not any(word.startswith("rate=") for word in words)
            assert main([*words, "rate=0.5", "dry_run=true"]) == 0
    plan = capsys.readouterr().out
    # At one rate: four datasets, 100 trials; eleven methods, SAT on whole nodes only.
    # GCNmf as published is a search of 48 settings with 2 seeds first, in each of its 4 cells.
    assert plan.count("Search on validation data: 192 cells, 384 trials: 0 done already") == 2
    assert "44 cells, 4400 trials: 0 done already" in plan
    assert "40 cells, 4000 trials: 0 done already" in plan
