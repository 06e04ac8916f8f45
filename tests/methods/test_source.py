"""The code that a class is made of: its own file, what it imports from beside it, and nothing else."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pagnn_bench.baselines.sat import SAT
from pagnn_bench.baselines.vae import VAE
from pagnn_bench.methods.base import Context
from pagnn_bench.methods.source import source_digest
from pagnn_bench.missing import Observed, hide
from tests.conftest import random_graph

FILES = {
    "mine.py": """
import json
from pagnn_bench.methods.imputation import LearnedImputation
from lab.parts import VALUE

class Mine(LearnedImputation):
    def learn(self, graph, context):
        import numpy as np
        return np.full(graph.features.shape, VALUE, dtype=np.float32)
""",
    "parts.py": "from . import deeper\nVALUE = deeper.VALUE\n",
    "deeper.py": "VALUE = 0.25\n",
    "unused.py": "VALUE = 7\n",
    "__init__.py": "",
}


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A user's folder with a learned imputation in several files."""
    folder = tmp_path / "lab"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(
        sys, "dont_write_bytecode", True
    )  # a file edited within a second looks like its bytecode
    yield folder
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "lab"]:
        del sys.modules[name]


def imported() -> type:
    """The class as a new process would have it."""
    _forget()
    importlib.invalidate_caches()
    return importlib.import_module("lab.mine").Mine


@pytest.mark.parametrize(
    ("file", "counts"), [("mine.py", True), ("parts.py", True), ("deeper.py", True), ("unused.py", False)]
)
def test_what_the_class_imports_from_beside_it_counts(lab, file, counts):
    before = source_digest(imported())
    assert source_digest(imported()) == before
    with (lab / file).open("a") as text:
        text.write("OTHER = 1\n")
    assert (source_digest(imported()) != before) == counts


def test_words_about_the_code_do_not_count(lab):
    before = source_digest(imported())
    text = (lab / "mine.py").read_text()
    head = "def learn(self, graph, context):"
    documented = text.replace(head, f'{head}\n        """Words."""')
    (lab / "mine.py").write_text(f'"""A method."""\n\n# A comment.{documented}')
    assert source_digest(imported()) == before
    (lab / "mine.py").write_text(documented.replace('"""Words."""', "graph = graph"))
    assert source_digest(imported()) != before


def test_a_file_edited_while_it_runs_is_not_what_runs(lab):
    mine = imported()
    before = source_digest(mine)
    (lab / "deeper.py").write_text("VALUE = 0.5\n")
    assert source_digest(mine) == before


def test_what_an_earlier_form_of_the_class_learned_is_not_used(lab, tmp_path):
    graph = random_graph()
    graph = hide(graph, Observed(graph.features.shape, rows=np.arange(graph.num_nodes) % 2 == 0))
    context = Context(5, torch.device("cpu"), cache=tmp_path / "cache")
    common = {"hidden": 4, "dropout": 0.5, "input_dropout": "post", "bias": True, "per_seed": False}
    filled = []
    for value in ("0.25", "0.25", "0.5"):
        (lab / "deeper.py").write_text(f"VALUE = {value}\n")
        filled.append(imported()(**common).impute(graph, context)[1].max())
    assert filled == [0.25, 0.25, 0.5]
    assert len(os.listdir(tmp_path / "cache")) == 2


def test_the_parts_of_sat_belong_to_it(monkeypatch):
    read = []
    original = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path.name) or original(path))
    for cls in (SAT, VAE):
        source_digest.__wrapped__(cls)
    own, shared = (
        {"sat.py", "sat_model.py", "vae.py"},
        {"learning.py", "dropout.py", "sparse.py", "network.py"},
    )
    assert own | shared <= set(read)
    assert "base.py" not in read
