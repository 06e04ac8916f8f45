"""Every random number drawn on the CPU: two devices that are compared must see the same ones.

Generators of different devices give different numbers for the same seed, and those of two GPU models may differ as
well. A comparison with the CPU is only possible on the CPU's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch.overrides import TorchFunctionMode


class _HostGenerator(torch.Generator):
    """A generator of the CPU, whatever device it is asked for."""

    def __new__(cls, device: Any = "cpu") -> Self:
        return super().__new__(cls)


class _HostDrawn(TorchFunctionMode):
    """Draws on the CPU whatever is drawn from a generator, and moves it to where it was wanted."""

    def __torch_function__(
        self, function: Callable, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if kwargs.get("generator") is None:
            return function(*args, **kwargs)
        if function.__name__.endswith("_"):
            if not args:  # torch.nn.init names its tensor
                args = (kwargs.pop("tensor"),)
            place, *rest = args
            if place.device.type == "cpu":
                return function(place, *rest, **kwargs)
            drawn = torch.empty(place.shape, dtype=place.dtype)
            return place.copy_(function(drawn, *rest, **kwargs))
        wanted = torch.device(kwargs.get("device") or "cpu")
        if wanted.type == "cpu":
            return function(*args, **kwargs)
        return function(*args, **{**kwargs, "device": "cpu"}).to(wanted)


@contextmanager
def host_drawn() -> Iterator[None]:
    """Inside, whoever draws from a generator of their own gets the numbers that they would get on a CPU.

    torch's global generators are not covered: modules that draw from them have to be compared without dropout.
    """
    ours = torch.Generator
    torch.Generator = _HostGenerator  # type: ignore[misc]
    try:
        with _HostDrawn():
            yield
    finally:
        torch.Generator = ours  # type: ignore[misc]
