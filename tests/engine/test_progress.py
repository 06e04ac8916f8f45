"""What the bar tells of batches that other processes are at."""

from __future__ import annotations

import pytest

from pagnn_bench.engine import progress
from pagnn_bench.engine.progress import Progress, UnderWay
from tests.records.common import CELL, OTHER


@pytest.fixture
def bar(monkeypatch) -> Progress:
    monkeypatch.setattr(progress, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(progress, "LOG_SECONDS", 0.0)
    return Progress(10)


def test_batches_under_way_take_turns(bar):
    tasks = [UnderWay(CELL, 0, "epoch 120", 35.4), UnderWay(OTHER, 3, "", 300)]
    shown = {}
    for _ in tasks:
        bar.under_way(tasks)
        shown[bar.bar.desc] = bar.bar.postfix
    assert shown == {
        f"{CELL}, mask 0": "epoch 120, for 35 s, 1 other under way",
        f"{OTHER}, mask 3": "for 5 min, 1 other under way",
    }


def test_a_batch_by_itself(bar):
    bar.under_way([])
    bar.under_way([UnderWay(CELL, 0, "VAE 10/100", 2)])
    assert bar.bar.postfix == "VAE 10/100, for 2 s"
