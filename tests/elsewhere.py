"""A simulated device: it computes on the CPU and behaves like a GPU, so that tests need none.

A tensor on ``ELSEWHERE`` wraps one of the CPU. Every operation passes through here at the level of torch's dispatcher,
including those of backward passes and optimisers. An operation that mixes devices raises, and so does one that would
crash the process on a GPU (an index out of range, a probability outside of [0, 1]). Waits of the host are counted.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten

CPU = torch.device("cpu")
# Torch runs backward passes on it without a driver, and stores no data there.
ELSEWHERE = torch.device("meta")


class WrongDevice(Exception):
    """Torch's "expected all tensors to be on the same device"."""


class Illegal(Exception):
    """Would crash the process on a GPU, as a device-side assert or an illegal memory access."""


class There(Tensor):
    """A tensor on ``ELSEWHERE``; its numbers are in ``inner``."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner: Tensor) -> There:
        strided = inner.layout == torch.strided
        shape = {"strides": inner.stride(), "storage_offset": inner.storage_offset()} if strided else {}
        return Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=ELSEWHERE, **shape)

    def __init__(self, inner: Tensor) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise WrongDevice(f"{func}: outside of elsewhere()")


class Elsewhere(TorchDispatchMode):
    """Runs and counts the operations.

    Attributes:
        operations: by name, without views, which launch nothing on a GPU.
        waits: by reason: reads from the device, shapes that depend on values, copies to the device that are not
            ``non_blocking``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [*_tensors(args), *_tensors(kwargs.values())]
        there = any(isinstance(tensor, There) for tensor in tensors)
        wanted = kwargs.get("device")
        to_there = there if wanted is None else wanted.type == ELSEWHERE.type
        if not (there or to_there):
            return func(*args, **kwargs)
        name = str(func.overloadpacket).removeprefix("aten.")
        self._check_places(name, func, args, tensors, moving=wanted is not None)
        inner_args = tuple(map(_unwrapped, args))
        inner_kwargs = {key: _unwrapped(value) for key, value in kwargs.items()}
        _check_legal(name, inner_args)
        if wanted is not None:
            inner_kwargs = {**inner_kwargs, "device": CPU}
        if not func.is_view:
            self.operations[name] += 1
        if reason := _wait(name, there, to_there, args, kwargs, inner_args):
            self.waits[reason] += 1
        result = func(*inner_args, **inner_kwargs)
        if not to_there:
            return result
        if name == "_to_copy" or wanted is None or there:
            return _wrapped(func, args, kwargs, result)
        return There(result)

    def _check_places(self, name: str, func: Any, args: Any, tensors: Sequence[Tensor], moving: bool) -> None:
        """Refuse mixed devices. CPU scalars may be mixed with anything, and torch moves an index to its tensor."""
        for tensor in tensors:
            if not isinstance(tensor, There) and tensor.device.type == ELSEWHERE.type:
                raise WrongDevice(
                    f"{name}: a tensor without numbers, created by a call that elsewhere.py does not handle"
                )
        if moving or name == "copy_":
            return
        if name in ("index", "index_put", "index_put_") and isinstance(args[0], There):
            tensors = [args[0], *_tensors(args[2:])]
        if any(not isinstance(tensor, There) and tensor.dim() > 0 for tensor in tensors):
            shapes = ", ".join(f"{tuple(tensor.shape)} on {tensor.device}" for tensor in tensors)
            raise WrongDevice(f"{name}: {shapes}")


# The shape of the result depends on values, so the host asks for it.
SIZED_BY_VALUES = {"nonzero", "masked_select", "bincount", "_unique2", "unique_dim", "unique_consecutive"}


def _wait(name: str, there: bool, to_there: bool, args: Any, kwargs: Any, inner: Any) -> str:
    """What the host waits for in this operation; empty for most."""
    if name in ("_local_scalar_dense", "equal"):
        return "a number"
    if name in SIZED_BY_VALUES or (name == "repeat_interleave" and kwargs.get("output_size") is None):
        return f"the shape of {name}"
    if name in ("index", "index_put", "index_put_"):
        masks = any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in inner[1])
        if masks and not (name != "index" and inner[2].numel() == 1):  # then it is a masked_fill
            return f"the shape of {name}"
        if any(isinstance(index, Tensor) and not isinstance(index, There) for index in args[1]):
            return "a copy to the device"
    if name == "_to_copy" and there != to_there:
        if there:
            return "a copy to the host"
        return "" if kwargs.get("non_blocking") else "a copy to the device"
    if name == "copy_" and isinstance(args[0], There) != isinstance(args[1], There):
        if isinstance(args[1], There):
            return "a copy to the host"
        return "" if args[2:] == (True,) or kwargs.get("non_blocking") else "a copy to the device"
    return ""


def _check_legal(name: str, args: Any) -> None:
    """Refuse arguments that a GPU does not check in time."""
    if name in (
        "index_select",
        "gather",
        "scatter",
        "scatter_",
        "scatter_add",
        "scatter_add_",
        "index_copy_",
    ):
        _check_range(name, args[2], args[0].shape[args[1]] if args[0].dim() else 1)
    elif name in ("index_add", "index_add_", "index_copy", "index_fill_", "index_fill"):
        _check_range(name, args[2], args[0].shape[args[1]])
    elif name == "embedding":
        _check_range(name, args[1], args[0].shape[0])
    elif name in ("index", "index_put", "index_put_"):
        sizes = zip(args[1], args[0].shape) if not _has_mask(args[1]) else ()
        for index, size in sizes:
            if index is not None:
                _check_range(name, torch.where(index < 0, index + size, index), size)
    elif name in ("nll_loss_forward", "nll_loss2d_forward"):
        ignored = args[1] == args[4]
        _check_range(name, args[1][~ignored], args[0].shape[1])
    elif name in ("binary_cross_entropy", "bernoulli", "bernoulli_", "multinomial"):
        chances = torch.as_tensor(args[0] if name != "bernoulli_" else args[1] if len(args) > 1 else 0.5)
        if not ((chances >= 0) & (chances <= 1)).all():
            raise Illegal(f"{name}: a probability outside of [0, 1]")


def _check_range(name: str, index: Tensor, size: int) -> None:
    if index.numel() and (int(index.min()) < 0 or int(index.max()) >= size):
        raise Illegal(f"{name}: an index from {int(index.min())} to {int(index.max())} into {size}")


def _has_mask(indices: Sequence[Tensor | None]) -> bool:
    return any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in indices)


# Operations nest tensors only in lists and tuples; torch's more general pytrees would take most of a test's time.
def _tensors(values: Iterable[Any]) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(value)
    return found


def _unwrapped(value: Any) -> Any:
    if isinstance(value, There):
        return value.inner
    return type(value)(map(_unwrapped, value)) if type(value) in (list, tuple) else value


def _put_there(value: Any) -> Any:
    if isinstance(value, Tensor):
        return There(value)
    return type(value)(map(_put_there, value)) if type(value) in (list, tuple) else value


@cache
def _written(func: Any) -> list[tuple[int, str, frozenset[str]]]:
    """Place, name and alias set of every argument that an operation writes to."""
    arguments = [(k, argument) for k, argument in enumerate(func._schema.arguments)]
    return [
        (k, argument.name, frozenset(argument.alias_info.before_set))
        for k, argument in arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


@cache
def _returned(func: Any) -> list[frozenset[str] | None]:
    """The alias set of every result that is an argument written to; None for a new tensor."""
    aliases = [returned.alias_info for returned in func._schema.returns]
    return [
        frozenset(alias.before_set) if alias is not None and alias.is_write else None for alias in aliases
    ]


def _wrapped(func: Any, args: Any, kwargs: Any, result: Any) -> Any:
    """The result on the device; operations that write to an argument return that argument itself."""
    written = {alias: args[k] if k < len(args) else kwargs.get(name) for k, name, alias in _written(func)}
    for tensor in _tensors(written.values()):
        if isinstance(tensor, There) and tensor.shape != tensor.inner.shape:
            raise NotImplementedError(f"{func} changes a shape in place")
    aliases = _returned(func)
    if not aliases:
        return None
    values = (result,) if len(aliases) == 1 else result
    wrapped = tuple(
        _put_there(value) if alias is None else written[alias] for alias, value in zip(aliases, values)
    )
    return wrapped[0] if len(aliases) == 1 else wrapped


class _Calls(TorchFunctionMode):
    """Handles what the dispatcher does not see: conversions between Python numbers and tensors, and generators."""

    def __torch_function__(self, func: Callable, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if (generator := kwargs.get("generator")) is not None:
            like = args[0].device if args and isinstance(args[0], Tensor) else CPU
            if getattr(generator, "place", CPU).type != torch.device(kwargs.get("device") or like).type:
                raise WrongDevice(f"{func.__name__}: the generator is on another device than its numbers")
        if func in (torch.tensor, torch.as_tensor, Tensor.new_tensor):
            given = args[0] if func is Tensor.new_tensor else None
            device = torch.device(kwargs.pop("device", None) or (given.device if given is not None else CPU))
            if given is not None:
                args, kwargs = args[1:], {"dtype": given.dtype, **kwargs}
            if isinstance(args[0], Tensor):
                return args[0].to(device=device, **kwargs)
            return torch.tensor(*args, **kwargs).to(device)
        if func is Tensor.tolist:
            return func(args[0].cpu())
        return func(*args, **kwargs)


class _Generator(torch.Generator):
    """A random generator that remembers its device."""

    place: torch.device

    def __new__(cls, device: torch.device | str = "cpu") -> _Generator:
        generator = super().__new__(cls)
        generator.place = torch.device(device)
        return generator

    def __init__(self, device: torch.device | str = "cpu") -> None:
        pass


@contextmanager
def elsewhere(monkeypatch: Any) -> Iterator[Elsewhere]:
    """Inside, ``ELSEWHERE`` is a device."""
    with monkeypatch.context() as patch:
        patch.setattr(torch, "Generator", _Generator)
        optimizer = importlib.import_module("torch.optim.optimizer")
        patch.setattr(optimizer, "_get_fused_kernels_supported_devices", lambda: ["cpu", ELSEWHERE.type])
        device = Elsewhere()
        with _Calls(), device:
            yield device
