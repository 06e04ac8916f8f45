"""Helpers for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pagnn_bench.cli import main
from pagnn_bench.config.catalogue import choices

# In front of the wrong word: a request that would be right and quick without it.
RUN = ["run", "data=synthetic", "protocol=quick", "masks=1", "seeds=1", "device=cpu"]


def refusal(capsys: pytest.CaptureFixture[str], folder: Path, arguments: list[str]) -> str:
    """The message that refuses a wrong request; checks that it is one sentence and that nothing was created."""
    before = sorted(folder.rglob("*"))
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("pagnn-bench: ")
    assert error.count("\n") == 1
    assert error.endswith("\n")
    assert sorted(folder.rglob("*")) == before
    return error.removeprefix("pagnn-bench: ").strip()


def one_of(group: str) -> str:
    return f"choose one of {', '.join(choices(group))}."
