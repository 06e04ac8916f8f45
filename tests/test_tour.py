"""The notebook runs, and says what it says."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from scripts.write_tour import TOUR, execute

NUMBER = re.compile(r"\d+\.\d+")


def said(notebook: dict[str, Any]) -> list[str]:
    """What each cell of code says."""
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [
        "".join("".join(out.get("text") or out["data"]["text/plain"]) for out in cell["outputs"])
        for cell in code
    ]


def test_the_tour(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    committed = json.loads(TOUR.read_text(encoding="utf-8"))
    assert committed["nbformat"] == 4
    for then, now in zip(said(committed), said(execute(committed)), strict=True):
        # The words are the same; numbers differ a little from machine to machine.
        assert NUMBER.sub("#", then).split() == NUMBER.sub("#", now).split()
        for first, second in zip(NUMBER.findall(then), NUMBER.findall(now), strict=True):
            assert float(first) == pytest.approx(float(second), rel=0.1, abs=0.02)


def test_its_outputs_are_small_and_from_no_machine_in_particular():
    text = TOUR.read_text(encoding="utf-8")
    assert len(text) < 40_000
    assert all(said(json.loads(text)))
    assert not re.search(r"/(home|work|tmp|root|Users|private)/", text)
