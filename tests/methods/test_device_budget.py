"""What an epoch costs on a device such as a GPU: operations, and how often the host waits for it.

Both are counted, method by method, on a device that is not there (:mod:`tests.elsewhere`), and compared with
``device_budget.json``. ``UPDATE_BUDGET=1 pytest tests/methods/test_device_budget.py`` writes that file.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from pagnn_bench.engine import execute
from pagnn_bench.engine.execute import Executor
from pagnn_bench.engine.prepare import hide_mask
from pagnn_bench.engine.progress import Watcher
from pagnn_bench.nn import network
from pagnn_bench.training.window import LOOK_EVERY
from tests.elsewhere import ELSEWHERE, Elsewhere, elsewhere
from tests.methods.test_all_methods import METHODS, cell_of, places

FILE = Path(__file__).with_name("device_budget.json")
SLACK = 0.02  # of the operations: another version of torch may count a few more

# What learns in its preparation, and how many steps it takes to that; of others nothing is trained there.
LEARNERS = {"vae": "epochs", "gain": "iterations", "sat": "epochs", "fsdcap": "classifier_epochs"}

# A module of the user's own decides itself what it waits for; this one, of torch_geometric, looks for self loops.
ITS_OWN = {"module"}


class Cost(NamedTuple):
    """Of an epoch, on average."""

    operations: float
    waits: float


class Meter(Watcher):
    """Reads the counters after the epochs 10 and 20, at each of which the host has looked at all epochs before."""

    def __init__(self, device: Elsewhere) -> None:
        self.device, self.readings = device, []

    def epoch(self, epoch: int, finished: object) -> None:
        if epoch in (LOOK_EVERY, 2 * LOOK_EVERY):
            self.readings.append(reading(self.device))


def reading(device: Elsewhere) -> Cost:
    return Cost(device.operations.total(), device.waits.total())


def per_epoch(before: Cost, after: Cost, epochs: int) -> Cost:
    return Cost(*(round((b - a) / epochs, 3) for a, b in zip(before, after, strict=True)))


def training(name: str, missing: str, monkeypatch: pytest.MonkeyPatch) -> Cost:
    """Under this rule every epoch brings weights to keep, the most there can be to do."""
    monkeypatch.setattr(execute, "device_facts", lambda device: {"device": str(device)})
    cell = cell_of(name, missing)
    changed = {"stopping": "window", "patience": 1000, "max_epochs": 2 * LOOK_EVERY + 1}
    with elsewhere(monkeypatch) as device:
        meter = Meter(device)
        cell = dataclasses.replace(cell, protocol={**cell.protocol, **changed})
        Executor(ELSEWHERE).run(cell, mask=0, seeds=(0, 1), watch=meter)
    # A network without weights is evaluated once.
    return per_epoch(*meter.readings, LOOK_EVERY) if meter.readings else Cost(0, 0)


def learning(name: str, monkeypatch: pytest.MonkeyPatch) -> Cost:
    """What ten more steps of a preparation take."""
    cell, readings = cell_of(name, "type1"), []
    for steps in (10, 20):
        method = {**cell.method, LEARNERS[name]: steps}
        if "patience" in method:
            method["patience"] = 1000
        with elsewhere(monkeypatch) as device:
            masked = hide_mask(dataclasses.replace(cell, method=method), 0, ELSEWHERE)
            masked.method.prepare(masked.for_method(), masked.context)
        readings.append(reading(device))
    return per_epoch(*readings, 10)


def check(what: str, cost: Cost) -> None:
    """Compare with what is committed, or write it down."""
    budget = json.loads(FILE.read_text()) if FILE.exists() else {}
    if os.environ.get("UPDATE_BUDGET"):
        FILE.write_text(json.dumps({**budget, what: cost._asdict()}, indent=1, sort_keys=True) + "\n")
        return
    allowed = Cost(**budget[what])
    assert cost.waits <= allowed.waits, f"{what}: the host waits more often"
    assert cost.operations <= (1 + SLACK) * allowed.operations, f"{what}: more operations"
    assert cost.operations >= (1 - SLACK) * allowed.operations, (
        f"{what}: fewer operations; UPDATE_BUDGET=1 keeps it so"
    )


@pytest.mark.parametrize(("name", "missing"), places(METHODS))
def test_an_epoch_of_training_keeps_to_its_budget(name, missing, monkeypatch):
    cost = training(name, missing, monkeypatch)
    assert cost.waits <= 1 or name in ITS_OWN
    check(f"{name} on {missing}", cost)


@pytest.mark.parametrize("name", LEARNERS)
def test_an_epoch_of_learning_keeps_to_its_budget(name, monkeypatch):
    cost = learning(name, monkeypatch)
    assert cost.waits <= 1
    check(f"learning of {name}", cost)


def test_the_budget_lists_what_there_is():
    expected = {f"{name} on {missing}" for name, missing in places(METHODS)}
    assert json.loads(FILE.read_text()).keys() == expected | {f"learning of {name}" for name in LEARNERS}


@pytest.mark.parametrize(
    "careless",
    [
        lambda values: values * (values.sum().item() != 0.5),
        lambda values: values.cpu().to(ELSEWHERE),
        lambda values: values if (values > 0).any() else values + 1,
    ],
    ids=["item", "there and back", "a condition"],
)
def test_a_careless_line_in_a_method_breaks_the_budget(careless, monkeypatch):
    monkeypatch.delenv("UPDATE_BUDGET", raising=False)
    plain = network.LayeredNetwork.forward
    monkeypatch.setattr(network.LayeredNetwork, "forward", lambda *given: careless(plain(*given)))
    cost = training("pagnn_n", "type1", monkeypatch)
    assert cost.waits >= 2  # once in training, once in validation
    with pytest.raises(AssertionError, match="pagnn_n on type1: the host waits more often"):
        check("pagnn_n on type1", cost)


def test_a_careless_line_in_a_backward_pass_breaks_the_budget(monkeypatch):
    """Functions see what is called, not what autograd does; the dispatcher sees both."""

    class Careless(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values):
            return values.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * (grad.sum().item() != 0.5)

    monkeypatch.delenv("UPDATE_BUDGET", raising=False)
    plain = network.LayeredNetwork.forward
    monkeypatch.setattr(network.LayeredNetwork, "forward", lambda *given: Careless.apply(plain(*given)))
    cost = training("pagnn_n", "type1", monkeypatch)
    with pytest.raises(AssertionError, match="waits more often"):
        check("pagnn_n on type1", cost)
