"""Draw every random number on the CPU, so that compared devices see the same ones.

Generators of different devices give different numbers for the same seed, even for two GPU models. So a comparison with
the CPU needs the CPU's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch.overrides import TorchFunctionMode


class _HostGenerator(torch.Generator):
    """A generator of the CPU, whatever the requested device."""

    def __new__(cls, device: Any = "cpu") -> Self:
        return super().__new__(cls)


class _HostDrawn(TorchFunctionMode):
    """Draws from generators on the CPU and moves the numbers to the requested device."""

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
    """Inside, generators give the numbers that they would give on a CPU.

    This does not cover torch's global generators: compare modules that draw from them without dropout.
    """
    ours = torch.Generator
    torch.Generator = _HostGenerator  # type: ignore[misc]
    try:
        with _HostDrawn():
            yield
    finally:
        torch.Generator = ours  # type: ignore[misc]
