"""A device that is not there: a check of where tensors live that needs no GPU.

Everything runs on the CPU, but tensors made on ``OTHER`` or moved to it are remembered, and an operation that mixes
them with tensors of the CPU raises as it would on a machine with a GPU. What only the autograd engine has touched (a
gradient) is taken to be where it should.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

CPU = torch.device("cpu")
OTHER = torch.device("cpu:0")  # torch takes it for the CPU, but the two objects differ

TO_NUMPY = {Tensor.numpy, Tensor.__array__, Tensor.tolist}
INDEXING = {Tensor.__getitem__, Tensor.__setitem__}  # torch moves an index to where the tensor is
# What may have operands on two devices: a copy from one to the other, and what Module.to does with its parameters.
MOVING = {Tensor.copy_, Tensor.data.__set__, torch._has_compatible_shallow_copy_type}


class WrongDevice(Exception):
    """What torch would say as «expected all tensors to be on the same device»."""


class _Whereabouts(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self._places: dict[int, torch.device] = {}  # by storage, which views share
        self._alive: list[Any] = []  # so that no address is given out twice
        self.moved = 0

    def __torch_function__(
        self, function: Callable, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function == Tensor.device.__get__:
            return self.place(args[0]) or CPU
        leaves = tree_leaves((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        wanted = [leaf for leaf in leaves if isinstance(leaf, torch.device)]
        if function is Tensor.cpu:
            wanted = [CPU]
        here = None if wanted or function in MOVING else self._common(function, tensors)
        result = function(*args, **kwargs)
        if wanted and isinstance(result, Tensor) and self.place(result) not in (None, wanted[0]):
            result = result.clone()  # to torch it is there already
        place = wanted[0] if wanted else here if tensors else CPU
        for found in tree_leaves(result):
            if isinstance(found, Tensor) and place is not None:
                self.put(found, place)
        generator = kwargs.get("generator")
        if generator is not None and place is not None and generator.place != place:
            raise WrongDevice(f"{function.__name__}: a generator of another device than its numbers")
        return result

    def _common(self, function: Callable, tensors: list[Tensor]) -> torch.device | None:
        """Where the operands are; a single number of the CPU may meet anything."""
        if function in INDEXING:
            tensors = tensors[:1]
        known = {(self.place(tensor), tensor.dim() == 0) for tensor in tensors}
        places = {place for place, _ in known if place is not None}
        if OTHER in places and function in TO_NUMPY:
            raise WrongDevice(f"{function.__name__}: of a tensor that is not on the CPU")
        if OTHER in places and (CPU, False) in known:
            shapes = ", ".join(f"{tuple(t.shape)} on {self.place(t)}" for t in tensors)
            raise WrongDevice(f"{function.__name__}: {shapes}")
        return OTHER if OTHER in places else CPU if places else None

    def place(self, tensor: Tensor) -> torch.device | None:
        return self._places.get(_storage(tensor)._cdata)

    def put(self, tensor: Tensor, place: torch.device) -> None:
        storage = _storage(tensor)
        self._alive.append(storage)
        self._places[storage._cdata] = place
        self.moved += place == OTHER


class _Generator(torch.Generator):
    """A random generator that remembers its device."""

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self.place = OTHER if device == OTHER else CPU


def _storage(tensor: Tensor) -> Any:
    dense = tensor.values() if tensor.layout == torch.sparse_csr else tensor
    return dense.untyped_storage()


@contextmanager
def other_device(monkeypatch: Any) -> Iterator[_Whereabouts]:
    """Inside, ``OTHER`` is a device of its own."""
    whereabouts = _Whereabouts()
    monkeypatch.setattr(torch, "Generator", _Generator)
    with whereabouts:
        yield whereabouts
