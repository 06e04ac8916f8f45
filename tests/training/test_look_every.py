"""Looking at the scores every few epochs keeps what looking after each would have kept."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from pagnn_bench.missing import hide
from pagnn_bench.nn.network import StackedNetwork
from pagnn_bench.training import loop, window
from pagnn_bench.training.clock import Clock
from pagnn_bench.training.loop import train
from pagnn_bench.training.protocol import Protocol
from pagnn_bench.training.stopping import RULES, stopping_rule
from tests.conftest import random_graph, random_observed
from tests.training.test_loop import CPU, pagnn, run

EPOCHS, MEMBERS, PATIENCE, NODES = 60, 8, 6, 100


class Aging(StackedNetwork):
    """Members that know who they are and how many steps they have taken; so many test nodes do they get right."""

    def __init__(self, members: int) -> None:
        super().__init__()
        self.who = nn.Parameter(torch.arange(float(members))[:, None])
        self.age = nn.Parameter(torch.zeros(members, 1))

    def forward(self, part, streams):
        if part == "train":  # a constant gradient of -1, so that Adam's steps are of its rate, 1
            return (torch.stack((-self.age, self.age), dim=2) / 2 + 0 * self.who[..., None]).expand(-1, 1, -1)
        right = torch.arange(NODES) < self.age.round()
        return torch.stack((right, ~right), dim=2).float()


def scripts(seed: int) -> np.ndarray:
    """Training loss, validation loss and number of correct nodes, [3, members, epochs]: many ties, and some NaN."""
    rng = np.random.default_rng(seed)
    falling = np.maximum.accumulate(rng.integers(0, 12, (MEMBERS, EPOCHS)), axis=1)
    loss = 2 - 0.1 * falling + 0.1 * rng.integers(0, 3, (MEMBERS, EPOCHS))
    right = np.minimum(falling + rng.integers(0, 3, (MEMBERS, EPOCHS)), NODES)
    train_loss = np.ones((MEMBERS, EPOCHS))
    loss[0, 17], loss[1, 0], train_loss[2, 23] = math.nan, math.inf, math.nan
    return np.stack((train_loss, loss, right))


def one_by_one(script: np.ndarray, stopping: str) -> list[dict]:
    """The rule by itself, for one member at a time."""
    records = []
    for train_loss, losses, right in script.transpose(1, 0, 2):
        rule, kept = stopping_rule(stopping, 1, PATIENCE), 0
        for epoch in range(1, EPOCHS + 1):
            loss = losses[epoch - 1]
            best, stop = rule.update(np.array([loss]), np.array([right[epoch - 1] / NODES]))
            kept = epoch if best[0] else kept
            if not (math.isfinite(loss) and math.isfinite(train_loss[epoch - 1])):
                records.append({"status": "failed", "epochs": epoch})
                break
            if stop[0] or epoch == EPOCHS:
                peak = {"peak_epoch": rule.peak_epoch[0], "peak_val_acc": rule.best_acc[0]}
                scores = {"val_loss": losses[kept - 1], "val_acc": right[kept - 1] / NODES}
                done = {"status": "ok", "best_epoch": kept, "epochs": epoch, "test_acc": kept / NODES}
                records.append({**done, **scores, **peak})
                break
    return records


@pytest.mark.parametrize("stopping", RULES)
@pytest.mark.parametrize("look_every", [1, 2, 7, 10, 64])
@pytest.mark.parametrize("seed", range(3))
def test_scripted_scores(stopping, look_every, seed, monkeypatch):
    """Epochs, kept weights and peaks, where members tie, diverge and stop in the middle of a window."""
    script, epoch = torch.from_numpy(scripts(seed)), 0

    def scripted(stack, losses, labels):
        nonlocal epoch
        epoch += 1
        return script[:, stack.network.who[:, 0].detach().long(), epoch - 1]

    monkeypatch.setattr(window, "_validate", scripted)
    monkeypatch.setattr(window, "_losses", lambda logits, labels: logits[:, 0, 0] - logits[:, 0, 1])
    nodes = np.arange(NODES)
    graph = SimpleNamespace(
        labels=np.zeros(NODES, dtype=np.int64),
        split=SimpleNamespace(train=nodes[:1], val=nodes, test=nodes, scored=None),
    )
    protocol = Protocol(1.0, 0.0, PATIENCE, EPOCHS, stopping, 1.0, "none")
    events = []
    result = train(
        Aging(MEMBERS),
        graph,
        protocol,
        range(MEMBERS),
        CPU,
        on_epoch=lambda *event: events.append(event),
        look_every=look_every,
    )
    expected = one_by_one(scripts(seed), stopping)
    for record, own in zip(result.records, expected, strict=True):
        assert {key: record.get(key) for key in own} == own
    assert result.seed_epochs == sum(record["epochs"] for record in expected)
    assert [number for number, _ in events] == list(range(1, max(r["epochs"] for r in expected) + 1))
    assert sum(len(finished) for _, finished in events) == MEMBERS


@pytest.mark.parametrize("stopping", RULES)
def test_whole_trainings(stopping):
    """A seed by itself: the same digits. A stack, which members leave later: the same up to rounding."""
    complete = random_graph(nodes=90)
    incomplete = hide(complete, random_observed(complete, "cells", 0.4))
    options = {"protocol": Protocol(0.05, 5e-3, 5, 60, stopping, 1.414, "none"), "keep_curve": True}
    for seed in range(3):
        expected = run(pagnn(), incomplete, [seed], **options).records
        for look_every in (4, 100):
            assert run(pagnn(), incomplete, [seed], look_every=look_every, **options).records == expected
    together = [run(pagnn(), incomplete, range(5), look_every=k, **options).records for k in (1, 4)]
    for one, other in zip(*together):
        assert one["curve"] == pytest.approx(other["curve"], rel=1e-4)
        for key in ("epochs", "best_epoch", "test_acc"):
            assert one[key] == other[key]


def test_a_gpu_notes_the_time_itself(monkeypatch):
    """Two events a span, and nobody waits."""
    recorded = []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self, stream):
            recorded.append(self)

        def elapsed_time(self, other):
            return 250.0 * (recorded.index(other) - recorded.index(self))

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: "stream")
    monkeypatch.setattr(torch.cuda, "synchronize", None)
    clock = Clock(torch.device("cuda", 0))
    start, middle, end = (clock.now() for _ in range(3))
    assert Clock.between(start, middle) == 0.25
    assert Clock.between(start, end) == 0.5


@pytest.mark.parametrize("look_every", [1, 4])
def test_only_moments_that_a_gpu_has_passed_are_compared(look_every, monkeypatch):
    """Torch raises where an event is asked for before the device came to it: something later must have been read."""
    noted, passed, read = [], set(), torch.Tensor.cpu

    class Strict:
        def __init__(self, device):
            pass

        def now(self):
            noted.append(len(noted))
            return noted[-1]

        @staticmethod
        def between(start, end):
            assert {start, end} <= passed, "torch: both events must be completed"
            return float(end - start)

    def cpu(tensor):
        passed.update(noted)
        return read(tensor)

    monkeypatch.setattr(loop, "Clock", Strict)
    monkeypatch.setattr(torch.Tensor, "cpu", cpu)
    complete = random_graph(nodes=30)
    incomplete = hide(complete, random_observed(complete, "cells", 0.4))
    protocol = Protocol(0.05, 5e-3, 20, 8, "val_loss", 1.414, "none")
    result = run(pagnn(), incomplete, [0], protocol=protocol, look_every=look_every)
    assert result.train_seconds == 8, "of one moment to the next in each epoch"
    assert 8 <= result.eval_seconds < 9, "the same, and the test"
