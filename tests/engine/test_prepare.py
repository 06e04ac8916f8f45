"""The one way from a cell to a prepared method: what a method sees on it, and whose time is counted."""

from __future__ import annotations

import ast
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch

from pagnn_bench.bench import child
from pagnn_bench.bench.measure import MeasureSettings, measure_place
from pagnn_bench.bench.speed import OURS, PLAIN
from pagnn_bench.config.identity import Cell
from pagnn_bench.engine.execute import Executor
from pagnn_bench.engine.plan import Batch
from pagnn_bench.engine.prepare import graph_of, hide_mask, prepare
from pagnn_bench.methods.base import Prepared
from pagnn_bench.methods.imputation import ImputationMethod
from pagnn_bench.missing import IncompleteGraph
from tests.bench.common import CPU, small_cell

ROOT = Path(__file__).resolve().parents[2]
COPY_SECONDS = 0.5


class Spy(ImputationMethod):
    """Notes every array of labels that it is shown, in its preparation or when a reference asks it to fill in."""

    seen: ClassVar[list[np.ndarray]] = []

    def prepare(self, graph, context):
        self.seen.append(graph.labels)
        return replace(super().prepare(graph, context), filled=None)  # so that `bench` asks again

    def impute(self, graph, context):
        self.seen.append(graph.labels)
        return graph.features


@pytest.fixture
def spied(monkeypatch) -> Cell:
    monkeypatch.setattr(Spy, "seen", [])
    cell = small_cell("zero", "type1", "protocol.max_epochs=2")
    return replace(cell, method={**cell.method, "name": "spy", "_target_": f"{__name__}.Spy"})


def by_executor(cell: Cell, folder: Path) -> None:
    Executor(CPU, 1).run_together((Batch(cell, 0, [0], 0), Batch(cell, 0, [1], 0)))


def by_bench(cell: Cell, folder: Path) -> None:
    settings = MeasureSettings([1], 2, 1, 1, CPU, memory=False, forms=[PLAIN], cache=folder)
    measure_place([cell], settings, lambda text: None)


def by_child(cell: Cell, folder: Path) -> None:
    inputs = folder / "inputs.npz"
    np.savez(inputs, filled=graph_of(cell).features.toarray())
    task = {"cell": asdict(cell), "threads": 1, "device": "cpu", "seeds": 1, "inputs": str(inputs)}
    child._measure({**task, "kind": "growth", "epochs": 2})
    for side in (OURS, PLAIN):
        child._measure({**task, "kind": "memory", "side": side})


@pytest.mark.parametrize("way", [by_executor, by_bench, by_child])
def test_no_method_is_given_a_label_of_a_validation_or_test_node(spied, tmp_path, way):
    way(spied, tmp_path)
    graph = graph_of(spied)
    train = graph.split.train
    others = np.setdiff1d(np.arange(graph.num_nodes), train)
    assert len(Spy.seen) >= 2
    for labels in Spy.seen:
        np.testing.assert_array_equal(labels[train], graph.labels[train])
        assert set(labels[others]) == {-1}


@pytest.mark.parametrize("folder", ["pagnn_bench", "scripts"])
def test_there_is_no_other_way(folder):
    """Who would prepare a method needs a graph with hidden entries, and those come from one module."""
    ways = set()
    for file in (ROOT / folder).rglob("*.py"):
        imported = {
            alias.name
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        if "hide" in imported:
            ways.add(str(file.relative_to(ROOT)))
    ours = {"pagnn_bench/engine/prepare.py", "pagnn_bench/missing/__init__.py"}
    assert ways == (ours if folder == "pagnn_bench" else set())


def test_copying_the_graph_is_not_the_methods_time(spied, monkeypatch):
    copied = IncompleteGraph.for_method

    def slow(graph):
        time.sleep(COPY_SECONDS)
        return copied(graph)

    monkeypatch.setattr(IncompleteGraph, "for_method", slow)
    assert prepare(hide_mask(spied, 0, CPU)).seconds < COPY_SECONDS


def test_what_a_gpu_is_still_doing_is_the_methods_time(spied, monkeypatch):
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: time.sleep(COPY_SECONDS))
    masked = hide_mask(spied, 0, CPU)
    assert prepare(masked).seconds < COPY_SECONDS
    monkeypatch.setattr(Spy, "prepare", lambda *_: Prepared(lambda seeds, gain: None))
    elsewhere = replace(masked, context=replace(masked.context, device=torch.device("cuda", 0)))
    assert prepare(elsewhere).seconds >= COPY_SECONDS


@pytest.mark.parametrize(("missing", "limits"), [("class", (0.1, 1)), ("type1", (0, 0.03))])
def test_what_the_mask_tells_is_recorded_with_the_drawn_rate(missing, limits):
    facts = prepare(hide_mask(small_cell("zero", missing, "rate=0.5"), 0, CPU)).facts
    assert limits[0] <= facts["mask_label_share"] <= limits[1]
    assert facts["missing_share"] == pytest.approx(0.5, abs=0.08)
