"""Random numbers for a device come from the CPU: ``meta`` stands for a device that cannot draw."""

from __future__ import annotations

import pytest
import torch

from pagnn_bench.check.words import host_drawn

META = torch.device("meta")
DRAWS = {
    "in place": lambda device, g: torch.empty(3, 4, device=device).normal_(generator=g),
    "initial weights": lambda device, g: torch.nn.init.uniform_(
        torch.empty(3, 4, device=device), generator=g
    ),
    "words": lambda device, g: torch.empty(5, dtype=torch.int64, device=device).random_(
        -(2**63), None, generator=g
    ),
    "uniform": lambda device, g: torch.rand(3, 4, generator=g, device=device),
    "normal": lambda device, g: torch.randn(7, generator=g, device=device),
    "whole numbers": lambda device, g: torch.randint(2**62, (), generator=g, device=device),
}


@pytest.mark.parametrize("what", DRAWS)
def test_a_device_takes_what_a_cpu_would_draw(what):
    plain = torch.Generator().manual_seed(3)
    expected = DRAWS[what](torch.device("cpu"), plain)
    with host_drawn():
        ours = torch.Generator("cuda").manual_seed(3)
        drawn = DRAWS[what](META, ours)
        same = torch.Generator("cuda").manual_seed(3)
        torch.testing.assert_close(DRAWS[what](torch.device("cpu"), same), expected, rtol=0, atol=0)
    assert (drawn.device, drawn.shape, drawn.dtype) == (META, expected.shape, expected.dtype)
    assert torch.equal(ours.get_state(), plain.get_state()), "as many numbers were drawn"


def test_outside_nothing_has_changed():
    before = torch.Generator
    with pytest.raises(ValueError, match="inside"), host_drawn():
        raise ValueError("inside")
    assert torch.Generator is before
