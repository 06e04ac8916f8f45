"""Bits that the host draws ahead for another device are those that it would have drawn on demand."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
import torch

from pagnn_bench.nn.ahead import Ahead
from pagnn_bench.nn.dropout import DropoutStreams
from tests.elsewhere import ELSEWHERE, There, elsewhere

CPU = torch.device("cpu")


@pytest.mark.parametrize("rates", [None, [0.5, 0.3, 0.0]])
def test_every_device_gets_the_bits_of_the_cpu(rates, monkeypatch):
    """Requests that repeat, that do not, single numbers in between and members that leave."""
    rng = np.random.default_rng(0)
    here = DropoutStreams([1, 2, 3], CPU, rates)
    with elsewhere(monkeypatch) as device:
        there = DropoutStreams([1, 2, 3], ELSEWHERE, rates)
        for step in range(60):
            if step in (
                10,
                40,
            ):  # in a row of requests that repeat, so that more is drawn already; and in another
                here.select([0, -1])
                there.select([0, -1])
            if step % 11 == 5:
                assert here.seed(1) == there.seed(1)
            count = (100, 640, 33)[step % 3] if step % 20 < 15 else int(rng.integers(1, 500))
            one, other = here.draw(count, 0.4), there.draw(count, 0.4)
            assert isinstance(other.packed, There)
            assert torch.equal(one.packed, other.packed.cpu())
            assert one.scales == other.scales
        assert set(device.waits) == {"a copy to the host"}  # of this test


def test_what_comes_next_is_drawn_ahead():
    drawn = []

    def draw(request):
        drawn.append(request)
        return torch.zeros(1)

    ahead = Ahead(draw, [], CPU)
    for request in "abab":
        ahead.take(request)
    ahead.take_back()
    assert drawn == list("ababa")


def test_bits_of_the_device_are_its_own(monkeypatch):
    with elsewhere(monkeypatch):
        streams = DropoutStreams([1], ELSEWHERE, rng="device")
        assert all(generator.place == ELSEWHERE for generator in streams.generators)
        assert isinstance(streams.draw(100, 0.5).packed, There)
        assert streams.seed(0) == DropoutStreams([1], CPU).seed(0)  # the host does not wait for it


def test_a_copy_to_a_gpu_waits_for_nobody(monkeypatch):
    """From pinned memory, on a stream of its own; the products wait for it, and then own it."""
    log = []

    class Stream:
        def __init__(self, name):
            self.name = name

        def record_event(self):
            log.append(f"{self.name}: event")
            return "event"

        def wait_event(self, event):
            log.append(f"{self.name}: waits for the {event}")

    @contextmanager
    def stream(chosen):
        log.append(f"on {chosen.name}")
        yield
        log.append(f"off {chosen.name}")

    monkeypatch.setattr(torch.cuda, "Stream", lambda device: Stream("copies"))
    monkeypatch.setattr(torch.cuda, "stream", stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream("products"))
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: log.append("pinned") or self)
    monkeypatch.setattr(
        torch.Tensor,
        "to",
        lambda self, device, non_blocking: log.append(f"to {device}, {non_blocking}") or self,
    )
    monkeypatch.setattr(
        torch.Tensor, "record_stream", lambda self, other: log.append(f"used on {other.name}"), raising=False
    )
    Ahead(lambda request: torch.zeros(request), [], torch.device("cuda", 0)).take(3)
    assert log == [
        "on copies",
        "pinned",
        "to cuda:0, True",
        "copies: event",
        "off copies",
        "products: waits for the event",
        "used on products",
    ]
