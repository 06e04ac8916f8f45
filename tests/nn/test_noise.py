"""Numbers that the host draws for a device."""

from __future__ import annotations

import torch

from pagnn_bench.nn.noise import Noise
from tests.elsewhere import ELSEWHERE, There, elsewhere

CPU = torch.device("cpu")


def test_every_device_gets_the_numbers_of_the_cpu(monkeypatch):
    here = Noise(3, CPU)
    with elsewhere(monkeypatch) as device:
        there = Noise(3, ELSEWHERE)
        for name in ("normal", "uniform", "normal"):
            one, other = getattr(here, name)(4, 5), getattr(there, name)(4, 5)
            assert isinstance(other, There)
            assert torch.equal(one, other.cpu())
        assert set(device.waits) == {"a copy to the host"}  # of this test


def test_a_copy_to_a_gpu_waits_for_nobody(monkeypatch):
    log = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: log.append("pinned") or self)
    monkeypatch.setattr(
        torch.Tensor,
        "to",
        lambda self, device, non_blocking: log.append(f"to {device}, {non_blocking}") or self,
    )
    Noise(0, torch.device("cuda", 0)).normal(2)
    assert log == ["pinned", "to cuda:0, True"]
