"""The device that is not there raises where a GPU would, and counts what the host waits for."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.elsewhere import CPU, ELSEWHERE, Illegal, There, WrongDevice, elsewhere


@pytest.fixture(autouse=True)
def device(monkeypatch):
    with elsewhere(monkeypatch) as device:
        yield device


def there(*shape: int) -> torch.Tensor:
    return torch.ones(shape).to(ELSEWHERE)


class Misplaced(torch.autograd.Function):
    """The identity, with a gradient on the wrong device."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * torch.ones(grad.shape)


def backward_through(function):
    weight = nn.Parameter(there(2))
    function(weight).sum().backward()


WRONG = {
    "a product": lambda: there(2, 3) @ torch.ones(3, 2),
    "a sum in place": lambda: there(2).add_(torch.ones(2)),
    "a list of tensors": lambda: torch.cat([there(2), torch.ones(2)]),
    "a selection": lambda: there(2).index_select(0, torch.tensor([1])),
    "an index from there": lambda: torch.ones(2)[torch.tensor([1]).to(ELSEWHERE)],
    "an output": lambda: torch.mul(there(2), 2, out=torch.empty(2)),
    "a view of what is here": lambda: there(2, 3) + torch.ones(3, 2).T,
    "a parameter": lambda: nn.Linear(2, 2)(there(1, 2)),
    "a sparse matrix": lambda: torch.eye(2).to_sparse_csr() @ there(2, 2),
    "random numbers": lambda: torch.rand(2, generator=torch.Generator(), device=ELSEWHERE),
    "random numbers in place": lambda: torch.empty(2).to(ELSEWHERE).normal_(generator=torch.Generator()),
    "a backward pass": lambda: backward_through(Misplaced.apply),
}


@pytest.mark.parametrize("what", WRONG)
def test_two_devices_do_not_mix(what):
    with pytest.raises(WrongDevice):
        WRONG[what]()


def test_an_array_needs_a_copy():
    with pytest.raises(RuntimeError, match="numpy"):
        there(2).numpy()


RIGHT = {
    "a product": lambda: there(2, 3) @ there(3, 2),
    "a single number": lambda: there(2) * torch.tensor(3.0),
    "an index": lambda: there(2)[torch.tensor([1])],
    "what is made like another": lambda: there(2) + torch.zeros(2, device=there(1).device),
    "numbers of Python": lambda: there(2) + torch.tensor([1.0, 2.0], device=ELSEWHERE),
    "numbers of Python like others": lambda: there(2) + there(1).new_tensor([1.0, 2.0]),
    "a copy": lambda: there(2).copy_(torch.zeros(2)),
    "an output": lambda: torch.mul(there(2), 2, out=torch.empty(2, device=ELSEWHERE)),
    "a module that was moved": lambda: nn.Linear(2, 2).to(ELSEWHERE)(there(1, 2)),
    "a sparse matrix": lambda: (
        torch.sparse_csr_tensor(
            *(torch.tensor(part).to(ELSEWHERE) for part in ([0, 1, 2], [1, 0], [2.0, 3.0])), size=(2, 2)
        )
        @ there(2, 2)
    ),
    "random numbers": lambda: torch.rand(2, generator=torch.Generator(ELSEWHERE), device=ELSEWHERE),
}


@pytest.mark.parametrize("what", RIGHT)
def test_what_a_gpu_takes_is_taken(what):
    result = RIGHT[what]()
    assert isinstance(result, There)
    assert result.device == ELSEWHERE


ILLEGAL = {
    "a selection": lambda: there(2).index_select(0, torch.tensor([2]).to(ELSEWHERE)),
    "an index": lambda: there(2)[torch.tensor([-3]).to(ELSEWHERE)],
    "a sum by groups": lambda: there(2).index_add_(0, torch.tensor([0, 5]).to(ELSEWHERE), there(2)),
    "a class": lambda: F.cross_entropy(there(1, 3), torch.tensor([3]).to(ELSEWHERE)),
    "a probability": lambda: F.binary_cross_entropy(2 * there(2), there(2)),
    "no probability": lambda: F.binary_cross_entropy(there(2) * float("nan"), there(2)),
    "a coin": lambda: torch.bernoulli(1.5 * there(2)),
}


@pytest.mark.parametrize("what", ILLEGAL)
def test_what_would_end_the_process_on_a_gpu_is_an_error(what):
    with pytest.raises(Illegal):
        ILLEGAL[what]()


WAITS = {
    "item": (lambda: there(1).item(), "a number"),
    "a condition": (lambda: bool(there(1) > 0), "a number"),
    "float": (lambda: float(there(2).sum()), "a number"),
    "nonzero": (lambda: there(2).nonzero(), "the shape of nonzero"),
    "a mask": (lambda: there(2)[there(2) > 0], "the shape of index"),
    "a copy to the host": (lambda: there(2).cpu(), "a copy to the host"),
    "a list": (lambda: there(2).tolist(), "a copy to the host"),
    "a copy": (lambda: torch.ones(2).to(ELSEWHERE), "a copy to the device"),
    "numbers": (lambda: torch.tensor([1.0], device=ELSEWHERE), "a copy to the device"),
}


@pytest.mark.parametrize("what", WAITS)
def test_what_the_host_waits_for_is_counted(what, device):
    make, reason = WAITS[what]
    make()
    assert device.waits[reason] >= 1


def test_what_nobody_waits_for_is_not_counted(device):
    x = torch.ones(3, 2).to(ELSEWHERE, non_blocking=True)
    (x.relu() @ x.T).sum().add_(1)
    x[x > 0.5] = 0.0
    assert not device.waits
    assert device.operations["mm"] == 1
    assert "t" not in device.operations  # a view


def test_a_read_in_a_backward_pass_is_counted(device):
    class Reads(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * grad.max().item()

    backward_through(Reads.apply)
    assert device.waits["a number"] == 1


def test_what_comes_back_is_here():
    array = (2 * there(2)).cpu().numpy()
    np.testing.assert_array_equal(array, [2, 2])
    assert torch.ones(2).device == CPU


def test_a_training_step_is_that_of_the_cpu():
    steps = []
    for place in (CPU, ELSEWHERE):
        weight = nn.Parameter(torch.arange(6.0).view(3, 2).to(place))
        adam = torch.optim.Adam([weight], lr=0.1, fused=True)
        for _ in range(2):
            adam.zero_grad()
            (torch.ones(1, 3).to(place) @ weight).square().sum().backward()
            adam.step()
        steps.append(weight.detach().cpu())
    assert torch.equal(*steps)
