"""Ordinary torch modules as a stack of seeds, with the same interface as networks written for stacks.

A layer written for a stack does the work of all seeds in one product. An ordinary module is evaluated member by member
on the whole graph, with the member's slice of the stacked parameters (:func:`torch.func.functional_call`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn

from pagnn_bench.config.errors import RequestError
from pagnn_bench.nn.dropout import DropoutStreams, KeepBits
from pagnn_bench.nn.network import StackedNetwork
from pagnn_bench.nn.seeded import seeded


@dataclass(frozen=True)
class ModuleInputs:
    """The arguments of the modules, on their device.

    Attributes:
        forward: arguments of ``forward`` by name: any of ``x`` [n, d], ``edge_index`` [2, E], ``observed`` bool [n, d]
            and ``edge_weight`` [E].
        loss: the same for the module's own ``loss``, with ``labels`` int64 [n], -100 except at training nodes (torch's
            losses ignore -100); None for a module without one.
        nodes: int64 [m] of every part of the split.
        num_classes: C.
        input_rate: dropout on ``x`` before the module sees it; 0 leaves all dropout to the module.
        who: the key and value that named the module, for error messages.
    """

    forward: Mapping[str, Tensor]
    loss: Mapping[str, Tensor] | None
    nodes: Mapping[str, Tensor]
    num_classes: int
    input_rate: float
    who: str


class _Member(nn.Module):
    """Logits and the module's own loss in one call, so that both see the weights of the member."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module: Any = module

    def forward(self, given: Mapping[str, Tensor], loss: Mapping[str, Tensor] | None) -> tuple[Tensor, Any]:
        logits = self.module(**given)
        return logits, None if loss is None else self.module.loss(logits=logits, **loss)


class ModuleStack(StackedNetwork):
    """S copies of one module, each with its own weights, buffers and randomness.

    Parameters and buffers are stacked, [S, ...]; a buffer (the running mean of a batch normalisation) is a parameter
    without a gradient here, so it is kept with the best weights and leaves the stack with its member. Dropout inside
    the module draws from torch's global generator, which is seeded for every call from the stream of the member.

    Args:
        modules: the members, which differ only in their weights, on the CPU.
        inputs: the arguments of the members.
        device: where they will be trained.
    """

    def __init__(self, modules: Sequence[nn.Module], inputs: ModuleInputs, device: torch.device) -> None:
        super().__init__()
        self.inputs, self.device = inputs, device
        states = [_state(_Member(module)) for module in modules]
        self.names: dict[str, str] = {}  # our name, without dots → the module's
        for name, first in states[0].items():
            own = name.removeprefix("module.").replace(".", ":")
            values = torch.stack([state[name].detach() for state in states]).to(device)
            self.register_parameter(own, nn.Parameter(values, requires_grad=first.requires_grad))
            self.names[own] = name
        # In a tuple, to keep its parameters out of those of the stack.
        self._template = (_Member(modules[0]).to(device),)
        self._buffer_names = {f"module.{name}" for name, _ in modules[0].named_buffers()}

    @property
    def first_layer(self) -> tuple[str, ...]:
        """The weight matrices of the layer that was created first, which ``protocol.decay=first`` decays."""
        matrices = [name for name, p in self.named_parameters() if p.requires_grad and p.dim() > 2]
        layer = _layer(matrices[0]) if matrices else ""
        return tuple(name for name in matrices if _layer(name) == layer)

    def replace(self, values: Mapping[str, Tensor]) -> None:
        for name, value in values.items():
            setattr(self, name, nn.Parameter(value, requires_grad=getattr(self, name).requires_grad))

    def forward(self, part: str, streams: DropoutStreams | None) -> Tensor:
        stacked = {name: getattr(self, own).unbind() for own, name in self.names.items()}
        keep, nodes = self._keep(streams), self.inputs.nodes[part]
        members = range(len(next(iter(stacked.values()))))
        logits = []
        for k in members:
            values = {name: each[k] for name, each in stacked.items()}
            logits.append(self._call(k, values, streams, keep, None)[0].index_select(0, nodes))
        return torch.stack(logits)

    def hidden(self, part: str) -> Tensor | None:
        """The input of the last layer with weights, [S, n, h]; None if that is the first layer, too."""
        [template] = self._template
        stacked = {name: getattr(self, own).unbind() for own, name in self.names.items()}
        layers = [each for each in template.module.modules() if each is not template.module]
        members = []
        with _inputs_of(layers, self.inputs.num_classes) as inputs:
            for k in range(len(next(iter(stacked.values())))):
                inputs.clear()
                self._call(k, {name: each[k] for name, each in stacked.items()}, None, None, None)
                values = inputs[max(inputs)] if inputs else None
                if values is None or values is self.inputs.forward.get("x"):
                    return None
                members.append(values)
        return torch.stack(members)

    def backward(self, streams: DropoutStreams, objective: Callable[[Tensor], Tensor]) -> Tensor:
        """As in the base class, with the module's own loss added.

        One member after the other, so that only one member's activations are in memory at a time.
        """
        parameters = {name: getattr(self, own) for own, name in self.names.items()}
        keep, losses = self._keep(streams), []
        for k in range(len(streams)):
            values = {n: p.detach()[k].requires_grad_(p.requires_grad) for n, p in parameters.items()}
            logits, extra = self._call(k, dict(values), streams, keep, self.inputs.loss)
            loss = objective(logits.index_select(0, self.inputs.nodes["train"])[None])[0]
            if extra is not None:
                loss = loss + self._checked_loss(extra)
            loss.backward()
            losses.append(loss.detach())
            for name, parameter in parameters.items():
                gradient = values[name].grad
                if gradient is not None:  # None: the loss does not depend on it
                    if parameter.grad is None:
                        parameter.grad = torch.zeros_like(parameter)
                    parameter.grad[k] = gradient
        return torch.stack(losses)

    def _keep(self, streams: DropoutStreams | None) -> KeepBits | None:
        """Which entries of x every member keeps, if we apply dropout to the input."""
        if streams is None or self.inputs.input_rate == 0:
            return None
        return streams.draw(self.inputs.forward["x"].numel(), self.inputs.input_rate)

    def _call(
        self,
        member: int,
        values: dict[str, Tensor],
        streams: DropoutStreams | None,
        keep: KeepBits | None,
        loss: Mapping[str, Tensor] | None,
    ) -> tuple[Tensor, Any]:
        """Logits [n, C] of a member with these values, and its own loss if ``loss`` has its arguments."""
        [template] = self._template
        training = streams is not None
        template.train(training)
        given = dict(self.inputs.forward)
        if keep is not None:
            given["x"] = given["x"] * keep.factors(member).view_as(given["x"])
        if training:  # evaluation must not change them
            values |= {name: values[name].clone() for name in self._buffer_names & values.keys()}
        versions = [tensor._version for tensor in given.values()]
        # In evaluation, a forward that draws random numbers draws the same ones every time.
        seed = 0 if streams is None else streams.seed(member)
        with seeded(seed, self.device):
            try:
                logits, extra = torch.func.functional_call(template, values, (given, loss))
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                raise RequestError(f"{self.inputs.who}: its forward or loss fails ({reason}).") from error
        for (name, tensor), version in zip(given.items(), versions):
            if tensor._version != version:  # all members and epochs share these tensors
                raise RequestError(
                    f"{self.inputs.who}: forward changes {name} in place; use {name}.clone() there."
                )
        self._check_logits(logits)
        if training:
            with torch.no_grad():
                for own, name in self.names.items():
                    if name in self._buffer_names:
                        getattr(self, own)[member].copy_(values[name])
        return logits, extra

    def _check_logits(self, logits: Any) -> None:
        given = self.inputs.forward
        nodes = next(given[name].shape[0] for name in ("x", "observed") if name in given)
        expected = (nodes, self.inputs.num_classes)
        if not isinstance(logits, Tensor) or tuple(logits.shape) != expected:
            shape = list(logits.shape) if isinstance(logits, Tensor) else f"a {type(logits).__name__}"
            raise RequestError(
                f"{self.inputs.who}: forward must return logits of shape {list(expected)} "
                f"(nodes, classes), not {shape}."
            )

    def _checked_loss(self, extra: Any) -> Tensor:
        if not isinstance(extra, Tensor) or extra.numel() != 1:
            raise RequestError(f"{self.inputs.who}: loss must return one number as a tensor.")
        return extra.reshape(())


def _state(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, each once even if modules share them."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


@contextmanager
def _inputs_of(layers: Sequence[nn.Module], classes: int) -> Iterator[dict[int, Tensor]]:
    """The inputs [n, k] of layers with weights that turn them into logits [n, C], in the order of the calls."""
    numbers, running, hooks = count(), list[int](), []
    inputs: dict[int, Tensor] = {}

    def before(layer: nn.Module, given: tuple[Any, ...]) -> None:
        running.append(next(numbers))

    def after(layer: nn.Module, given: tuple[Any, ...], out: Any) -> None:
        number, values = running.pop(), given[0] if given else None
        if not isinstance(values, Tensor) or not isinstance(out, Tensor):
            return
        if values.dim() == 2 and out.shape == (len(values), classes):
            inputs[number] = values

    for layer in layers:
        if any(True for _ in layer.parameters()):
            hooks += [layer.register_forward_pre_hook(before), layer.register_forward_hook(after)]
    try:
        yield inputs
    finally:
        for hook in hooks:
            hook.remove()


def load_member(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy the weights of a member, by their names in the stack, into a module."""
    state = _state(module)
    with torch.no_grad():
        for own, values in weights.items():
            state[own.replace(":", ".")].copy_(values)


def _layer(name: str) -> str:
    """The layer of a parameter: ``conv1`` for ``conv1:lin:weight``, ``convs:0`` for ``convs:0:lin:weight``."""
    parts = name.split(":")
    return ":".join(parts[: 2 if len(parts) > 2 and parts[1].isdigit() else 1])
