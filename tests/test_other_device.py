"""The device that is not there raises where a GPU would, and only there."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tests.other_device import CPU, OTHER, WrongDevice, other_device


@pytest.fixture(autouse=True)
def inside(monkeypatch):
    with other_device(monkeypatch) as whereabouts:
        yield whereabouts


def there(*shape: int) -> torch.Tensor:
    return torch.ones(shape).to(OTHER)


WRONG = {
    "a product": lambda: there(2, 3) @ torch.ones(3, 2),
    "a sum in place": lambda: there(2).add_(torch.ones(2)),
    "a list of tensors": lambda: torch.cat([there(2), torch.ones(2)]),
    "a selection": lambda: there(2).index_select(0, torch.tensor([1])),
    "an output": lambda: torch.mul(there(2), 2, out=torch.empty(2)),
    "a view of what is here": lambda: there(2, 3) + torch.ones(3, 2).T,
    "a parameter": lambda: nn.Linear(2, 2)(there(1, 2)),
    "a sparse matrix": lambda: torch.eye(2).to_sparse_csr() @ there(2, 2),
    "its parts": lambda: torch.sparse_csr_tensor(
        torch.tensor([0, 1]), torch.tensor([0]), there(1), size=(1, 1)
    ),
    "an array": lambda: there(2).numpy(),
    "random numbers": lambda: torch.rand(2, generator=torch.Generator(), device=OTHER),
    "random numbers in place": lambda: torch.empty(2).normal_(generator=torch.Generator(OTHER)),
}


@pytest.mark.parametrize("what", WRONG)
def test_two_devices_do_not_mix(what):
    with pytest.raises(WrongDevice):
        WRONG[what]()


RIGHT = {
    "a product": lambda: there(2, 3) @ there(3, 2),
    "a single number": lambda: there(2) * torch.tensor(3.0),
    "an index": lambda: there(2)[torch.tensor([1])],
    "what is made like another": lambda: there(2) + torch.zeros(2, device=there(1).device),
    "a copy": lambda: there(2).copy_(torch.zeros(2)),
    "a module that was moved": lambda: nn.Linear(2, 2).to(OTHER)(there(1, 2)),
    "random numbers": lambda: torch.rand(2, generator=torch.Generator(OTHER), device=OTHER),
}


@pytest.mark.parametrize("what", RIGHT)
def test_what_a_gpu_takes_is_taken(what, inside):
    assert inside.place(RIGHT[what]()) == OTHER


def test_what_comes_back_is_here():
    array = (2 * there(2)).cpu().numpy()
    np.testing.assert_array_equal(array, [2, 2])
    assert torch.ones(2).device == CPU


def test_gradients_come_by_themselves():
    weight = nn.Parameter(there(3, 2))
    (there(1, 3) @ weight).sum().backward()
    torch.testing.assert_close(weight.grad.cpu(), torch.ones(3, 2))
