"""An ordinary torch module as a method: written for one graph and one seed, trained like all others.

::

    class MyGNN(torch.nn.Module):
        def __init__(self, in_channels: int, hidden: int, out_channels: int, dropout: float): ...
        def forward(self, x, edge_index, observed): ...  # logits [n, C]

A module gets the arguments that it names: its constructor any of ``in_channels``, ``hidden`` (or ``hidden_channels``),
``out_channels``, ``num_layers`` (or ``layers``), ``dropout`` and the keys of ``method.args``; its forward any of ``x``
[n, d], ``edge_index`` [2, E], ``observed`` bool [n, d] and ``edge_weight`` [E]. It may have two more functions:

* ``loss(self, logits, labels)``: added to the cross entropy in training. Gets the logits of all nodes [n, C] and labels
  [n], -100 for all but training nodes; it may also name the arguments of ``forward``.
* ``prepare(x, edge_index, observed)``, a static method: called once per mask, before any module is made. Returns
  another x, or a dictionary with some of x, edge_index and edge_weight.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from pagnn_bench.config.errors import RequestError, refuse
from pagnn_bench.config.loading import load_class
from pagnn_bench.methods.base import Context, Method, Prepared
from pagnn_bench.methods.portable import Portable, edge_index
from pagnn_bench.methods.values import flag, fraction, whole
from pagnn_bench.missing import IncompleteGraph
from pagnn_bench.nn.module_stack import ModuleInputs, ModuleStack, load_member
from pagnn_bench.nn.network import PARTS
from pagnn_bench.nn.seeded import seeded

GIVEN = ("x", "edge_index", "observed", "edge_weight")  # the arguments that forward may name
IGNORED = -100  # the label that torch's losses ignore


@dataclass(frozen=True)
class ModuleRecipe:
    """The class of a module and the arguments of its constructor; refuses unsuitable signatures at once.

    Attributes:
        key: the key that names it, for messages.
        path: ``package.module.Class``.
        hidden, layers, dropout: passed to a constructor that names them.
        args: further arguments of the constructor; they override the others.
    """

    key: str
    path: str
    hidden: int
    layers: int
    dropout: float
    args: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        constructor = _Arguments.of(self.module_class)
        for name in self.args:
            if not (constructor.any_name or name in constructor.names):
                raise RequestError(
                    f"method.args.{name}: {self.path} has no such argument; it has {', '.join(constructor.names)}."
                )
        given = (*self._numbers(1, 1), *self.args)
        self._check("its constructor", constructor, given, "; give it as method.args")
        self._check("forward", self._forward, GIVEN)
        if not {"x", "observed"} & set(self._forward.names):
            raise RequestError(f"{self.who}: forward takes neither x nor observed.")
        if self._loss is not None:
            self._check("loss", self._loss, ("logits", "labels", *GIVEN))
        if self._prepare is not None:
            self._check("prepare", self._prepare, GIVEN[:3], "; make it a static method")

    @property
    def who(self) -> str:
        return f"{self.key}={self.path}"

    @property
    def module_class(self) -> Any:
        return load_class(self.key, self.path, nn.Module, "torch.nn.Module")

    @property
    def _forward(self) -> _Arguments:
        return _Arguments.of(self.module_class.forward, bound=True)

    @property
    def _loss(self) -> _Arguments | None:
        own = getattr(self.module_class, "loss", None)
        return _Arguments.of(own, bound=True) if callable(own) else None

    @property
    def _prepare(self) -> _Arguments | None:
        own = getattr(self.module_class, "prepare", None)
        return _Arguments.of(own) if callable(own) else None

    def _check(self, what: str, arguments: _Arguments, known: Collection[str], hint: str = "") -> None:
        for name in arguments.required:
            if name not in known:
                names = ", ".join(dict.fromkeys(known))
                raise RequestError(
                    f"{self.who}: {what} needs an argument `{name}`, but can only get {names}{hint}."
                )

    def _numbers(self, features: int, classes: int) -> dict[str, Any]:
        """The values that a constructor may name, under all their names."""
        return {
            "in_channels": features,
            **dict.fromkeys(("hidden", "hidden_channels"), self.hidden),
            "out_channels": classes,
            **dict.fromkeys(("num_layers", "layers"), self.layers),
            "dropout": self.dropout,
        }

    def _arguments(self, features: int, classes: int) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {**_Arguments.of(self.module_class).named(self._numbers(features, classes)), **self.args}

    def make(self, features: int, classes: int, seed: int) -> nn.Module:
        """The module for d features and C classes, on the CPU, with the initial weights of a seed."""
        cls, numbers = self.module_class, self._arguments(features, classes)
        with seeded(seed, torch.device("cpu")):  # for the same weights on every device
            try:
                module: nn.Module = cls(**numbers)
            except Exception as error:
                shown = ", ".join(f"{name}={value}" for name, value in numbers.items())
                what = f"{type(error).__name__}: {error}"
                raise RequestError(f"{self.who}: cannot be made with {shown} ({what}).") from error
        if any(nn.parameter.is_lazy(p) for p in module.parameters()):
            raise RequestError(
                f"{self.who}: has parameters without a shape; use in_channels instead of lazy layers."
            )
        if not any(p.requires_grad for p in module.parameters()):
            raise RequestError(f"{self.who}: has no parameters to train.")
        return module

    def check(self, features: int, classes: int) -> None:
        """Refuse a module that cannot be made. Skipped if it has its own ``prepare``, which may change d."""
        if self._prepare is None:
            self.make(features, classes, seed=0)

    def prepared(
        self,
        graph: IncompleteGraph,
        features: sp.csr_array | np.ndarray,
        context: Context,
        input_rate: float = 0.0,
        **rest: Any,
    ) -> Prepared:
        """The module on a graph.

        Args:
            graph: edges, mask, split and training labels.
            features: x [n, d].
            context: device, and the seed of what ``prepare`` draws.
            input_rate: dropout on x before the module sees it.
            **rest: facts and filled-in features, see :class:`~pagnn_bench.methods.base.Prepared`.
        """
        device, classes = context.device, graph.num_classes
        given = self._given(graph, features, context)
        labels = torch.from_numpy(np.where(graph.labels < 0, IGNORED, graph.labels)).to(device)
        nodes = {part: torch.from_numpy(getattr(graph.split, part)).to(device) for part in PARTS}
        loss = None if self._loss is None else self._loss.named({"labels": labels, **given})
        inputs = ModuleInputs(self._forward.named(given), loss, nodes, classes, input_rate, self.who)
        width = given["x"].shape[1]

        def network(seeds: Sequence[int], gain: float) -> ModuleStack:
            # The gain is for our own layers; a module initialises itself.
            return ModuleStack([self.make(width, classes, seed) for seed in seeds], inputs, device)

        def state(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
            module = self.make(width, classes, seed=0)
            load_member(module, weights)
            return module.state_dict()

        def arrays() -> dict[str, np.ndarray]:
            return {name: tensor.cpu().numpy() for name, tensor in inputs.forward.items()}

        portable = Portable(self.path, self._arguments(width, classes), state, arrays)
        return Prepared(network, **rest, portable=portable)

    def _given(
        self, graph: IncompleteGraph, features: sp.csr_array | np.ndarray, context: Context
    ) -> dict[str, Tensor]:
        """The arguments that forward may name, on the device."""
        values = features if isinstance(features, np.ndarray) else features.toarray()
        known = graph.observed
        mask = torch.from_numpy(known.dense().copy() if known.rows is None else known.rows[:, None])
        given = {
            "x": torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32)),
            "edge_index": torch.from_numpy(edge_index(graph.adjacency)),
            "observed": mask.expand(known.shape),  # a view if there is one flag per node
        }
        given = {name: tensor.to(context.device) for name, tensor in given.items()}
        if self._prepare is not None:
            given |= self._prepared_once(given, context)
        if "edge_weight" in self._forward.required:
            given.setdefault("edge_weight", torch.ones(given["edge_index"].shape[1], device=context.device))
        return given

    def _prepared_once(self, given: Mapping[str, Tensor], context: Context) -> dict[str, Tensor]:
        """The arguments that the module's own ``prepare`` replaces."""
        assert self._prepare is not None
        with seeded(context.seed, context.device), torch.no_grad():
            try:
                own = {name: tensor.clone() for name, tensor in self._prepare.named(given).items()}
                found = self.module_class.prepare(**own)
            except Exception as error:
                what = f"{type(error).__name__}: {error}"
                raise RequestError(f"{self.who}: its prepare fails ({what}).") from error
        found = {"x": found} if isinstance(found, Tensor) else found
        valid = isinstance(found, dict) and found.keys() <= {"x", "edge_index", "edge_weight"}
        if not valid or not all(isinstance(value, Tensor) for value in found.values()):
            raise RequestError(
                f"{self.who}: prepare must return x, or a dictionary of x, edge_index and edge_weight, as tensors."
            )
        if "x" in found and (found["x"].dim() != 2 or len(found["x"]) != len(given["x"])):
            shape, nodes = list(found["x"].shape), len(given["x"])
            raise RequestError(
                f"{self.who}: prepare must return x with {nodes} rows, one per node, not {shape}."
            )
        return {name: tensor.to(context.device) for name, tensor in found.items()}


@dataclass(frozen=True)
class _Arguments:
    """The arguments of a function that can be given by name.

    Attributes:
        names: all of them.
        required: those without a default.
        any_name: whether it accepts any others (``**kwargs``).
    """

    names: tuple[str, ...]
    required: tuple[str, ...]
    any_name: bool

    @classmethod
    def of(cls, function: Callable[..., Any], bound: bool = False) -> _Arguments:
        """Of a class or a function; ``bound`` leaves out ``self``."""
        every = list(inspect.signature(function).parameters.values())[1 if bound else 0 :]
        named = [p for p in every if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        required = tuple(p.name for p in named if p.default is p.empty)
        kwargs = any(p.kind == p.VAR_KEYWORD for p in every)
        return cls(tuple(p.name for p in named), required, kwargs)

    def named(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values that the function names."""
        return {name: value for name, value in values.items() if name in self.names}


class Module(Method):
    """A module of torch or torch_geometric on the attributes, with 0 (or NaN) for missing ones.

    Args:
        module: ``package.module.Class``, importable or in the current directory.
        hidden, layers, dropout: passed to a constructor that names them.
        args: further arguments of the constructor.
        nan: missing entries of x are NaN instead of 0.
    """

    on_request = "your own network, method.module=mine.MyGNN"

    def __init__(
        self, module: str, hidden: int, layers: int, dropout: float, args: Mapping[str, Any] | None, nan: bool
    ) -> None:
        if not isinstance(module, str):
            refuse("method.module", module, "give the dotted name of a class, such as mine.MyGNN")
        if not isinstance(args, Mapping | None):
            refuse("method.args", args, "give method.args.NAME=VALUE for arguments of the constructor")
        numbers = (whole("hidden", hidden), whole("layers", layers), fraction("dropout", dropout))
        self.recipe = ModuleRecipe("method.module", module, *numbers, args=dict(args or {}))
        self.nan = flag("nan", nan)

    def check(self, features: int, classes: int) -> None:
        self.recipe.check(features, classes)

    def prepare(self, graph: IncompleteGraph, context: Context) -> Prepared:
        features = graph.features.toarray()
        if self.nan:
            features = np.where(graph.observed.dense(), features, np.float32(np.nan))
        return self.recipe.prepared(graph, features, context)
