"""The interface of methods: look once at an incomplete graph, then build networks for any number of seeds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch

from pagnn_bench.config.errors import RequestError
from pagnn_bench.methods.portable import Portable
from pagnn_bench.methods.values import choice, flag, fraction, whole
from pagnn_bench.missing import PATTERNS, IncompleteGraph
from pagnn_bench.nn.inputs import DropoutFirstInput, Input, make_input
from pagnn_bench.nn.network import PARTS, LayeredNetwork, Part, StackedNetwork, layer_rows, neighbourhood
from pagnn_bench.nn.sparse import SparseOperator


def say_nothing(text: str) -> None:
    """The default of :attr:`Context.report`."""


@dataclass(frozen=True)
class Context:
    """What a method gets besides the graph.

    Attributes:
        seed: seed of everything random in the preparation (an imputation model); the same for all trials of a mask.
        device: where the networks will live, and where a learned imputation trains.
        report: shows the progress of a long preparation, such as ``"VAE 120/1000"``.
        cache: folder for learned imputations; None caches none.
        relearn: learn cached imputations again (``force=true``).
        narrow: multiply in bfloat16 while an imputation model trains (``precision=bfloat16``).
    """

    seed: int
    device: torch.device
    report: Callable[[str], None] = say_nothing
    cache: Path | None = None
    relearn: bool = False
    narrow: bool = False


@dataclass(frozen=True)
class Prepared:
    """What a method has worked out for one mask.

    Attributes:
        network: (weight seeds, init gain) → the stacked network of these seeds.
        facts: numbers worth recording, such as the share of empty neighbourhoods.
        filled: the features [n, d] with the missing entries filled in, if the method does so; their error on the hidden
            entries is measured and recorded.
        portable: one of the networks as an ordinary torch module, if there is one that computes the same.
    """

    network: Callable[[Sequence[int], float], StackedNetwork]
    facts: dict[str, Any] = field(default_factory=dict)
    filled: sp.csr_array | np.ndarray | None = None
    portable: Portable | None = None


class Method(ABC):
    """Base of all methods. Hyper-parameters are constructor arguments, named as the keys of the method's YAML."""

    patterns: ClassVar[tuple[str, ...]] = PATTERNS  # the missing patterns that the method is defined for
    patterns_reason: ClassVar[str] = ""  # why not for the others, for error messages
    oracle: ClassVar[bool] = False  # True only for controls that may see the complete features
    on_request: ClassVar[str] = ""  # why `compare` trains it only if it is named; "" if it always does
    per_seed: bool = False  # True: prepare for every seed instead of once per mask

    @property
    def stackable_dropout(self) -> bool:
        """Whether the key ``dropout`` is only the rate of the dropout streams, so that settings which differ in it can
        train as one stack."""
        return False

    @property
    def has_bfloat16(self) -> bool:
        """Whether its networks can be trained with precision=bfloat16."""
        return False

    def check(self, features: int, classes: int) -> None:  # noqa: B027
        """Refuse, before anything is trained, what cannot be made for d attributes and C classes."""

    @abstractmethod
    def prepare(self, graph: IncompleteGraph, context: Context) -> Prepared:
        """Do everything that depends on the mask but not on the seed of a trial.

        Args:
            graph: what is known; hidden values are not in it.
            context: seed, device, progress report and cache.
        """


@dataclass(frozen=True)
class Signal:
    """The two fixed matrices of a two-layer method.

    Attributes:
        aggregated: G [n, d], input of layer 1, CSR or dense.
        operator: P [n, n], propagation of layer 2.
        factors: (Q [n, n], X [n, d], C [n, 1] or [n, d]) with G = (Q X) ⊙ C; needed for dropout before aggregation.
        facts, filled: see :class:`Prepared`.
    """

    aggregated: sp.csr_array | np.ndarray
    operator: sp.csr_array
    factors: tuple[sp.csr_array, sp.csr_array | np.ndarray, np.ndarray] | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    filled: sp.csr_array | np.ndarray | None = None


OWN_NETWORK = "gcn"  # the layers of this file, which are a GCN for methods that fill in
INPUT_DROPOUTS = ("post", "pre", "none")


class TwoLayerMethod(Method):
    """A method with the two-layer network of the paper; a subclass provides G and P.

    Args:
        hidden: width h of the hidden layer.
        dropout: dropout rate.
        input_dropout: ``post`` drops entries of G, ``pre`` drops features before they are aggregated, ``none``
            leaves dropout to the hidden layer.
        bias: whether the layers have a bias.
        layers: 2 in the paper; each further one is P drop(H) W + b of width h, with ReLU.
        network: ``gcn``, which is this network; only methods that fill in can have another
            (:class:`~pagnn_bench.methods.imputation.ImputationMethod`).
    """

    def __init__(
        self,
        hidden: int,
        dropout: float,
        input_dropout: str,
        bias: bool,
        layers: int = 2,
        network: str = OWN_NETWORK,
    ) -> None:
        self.hidden, self.dropout = whole("hidden", hidden), fraction("dropout", dropout)
        self.input_dropout = choice("input_dropout", input_dropout, INPUT_DROPOUTS)
        self.bias = flag("bias", bias)
        self.layers = whole("layers", layers, least=2)
        self.network = self._checked_network(network)

    @property
    def stackable_dropout(self) -> bool:
        return self.network == OWN_NETWORK  # for others the rate is an argument of a constructor

    @property
    def has_bfloat16(self) -> bool:
        return self.network == OWN_NETWORK

    def _checked_network(self, network: str) -> str:
        """The network behind the method, by its name."""
        if network != OWN_NETWORK:
            own = type(self).__name__
            raise RequestError(
                f"method.network={network}: {own} is a network itself; others can only follow methods that fill in "
                "missing entries (mf, zero, neighbor_mean, fp, pcfi, fisf, fsdcap, arb, vae, gain, sat, full)."
            )
        return network

    @abstractmethod
    def signal(self, graph: IncompleteGraph, context: Context) -> Signal:
        """G and P of this method."""

    def prepare(self, graph: IncompleteGraph, context: Context) -> Prepared:
        signal, device = self.signal(graph, context), context.device
        parts = {}
        for part in PARTS:
            operators, rows = layer_rows(signal.operator, getattr(graph.split, part), self.layers)
            first = self._input(signal, rows, part, device)
            parts[part] = Part(first, tuple(SparseOperator(operator, device) for operator in operators))
        inner = [self.hidden] * (self.layers - 1)
        sizes = (signal.aggregated.shape[1], *inner, graph.num_classes)
        rates = (0.0 if self.input_dropout == "none" else self.dropout, self.dropout)

        def network(seeds: Sequence[int], gain: float) -> LayeredNetwork:
            return LayeredNetwork(parts, sizes, seeds, rates, gain, self.bias, device)

        return Prepared(network, signal.facts, signal.filled, self.portable(graph, signal))

    def portable(self, graph: IncompleteGraph, signal: Signal) -> Portable | None:
        """The network as an ordinary torch module; None if no existing one computes the same."""
        return None

    def layer_arguments(self, features: int, classes: int) -> dict[str, Any]:
        """Constructor arguments for a torch_geometric model with layers of these sizes."""
        sizes = {"in_channels": features, "hidden_channels": self.hidden, "num_layers": self.layers}
        return {**sizes, "out_channels": classes, "bias": self.bias}

    def _input(self, signal: Signal, rows: np.ndarray, part: str, device: torch.device) -> Input:
        if part == "train" and self.input_dropout == "pre":
            assert signal.factors is not None
            operator, features, correction = signal.factors
            operator, columns = neighbourhood(operator, rows)
            return DropoutFirstInput(operator, features[columns], correction[rows], device)
        return make_input(signal.aggregated[rows], device)
