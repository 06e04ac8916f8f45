"""Networks whose parameters are stacked over seeds, and the network of graph convolutions that most methods share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from pagnn_bench.nn.dropout import DropoutStreams, dropout
from pagnn_bench.nn.inputs import DenseInput, Input
from pagnn_bench.nn.sparse import SparseOperator

PARTS = ("train", "val", "test")


class StackedNetwork(nn.Module, ABC):
    """S networks at once: every parameter has the seeds as its first dimension, [S, ...].

    The trainer shortens the stack when a seed stops and evaluates snapshots of single seeds, so an implementation
    reads S from its parameters and never stores it.
    """

    @abstractmethod
    def forward(self, part: str, streams: DropoutStreams | None) -> Tensor:
        """Logits [S, m, C] of the m nodes of a part (train, val or test); no streams means evaluation."""

    def hidden(self, part: str) -> Tensor | None:
        """The last hidden layer [S, r, h] in evaluation; None for a network that has none.

        It covers the r nodes that the logits of a part depend on, in the order of the graph.
        """
        return None

    def backward(self, streams: DropoutStreams, objective: Callable[[Tensor], Tensor]) -> Tensor:
        """Compute the gradient of every member's training loss, as the ``grad`` of the parameters.

        A network whose loss has further terms overrides this.

        Args:
            streams: dropout of the members.
            objective: logits of the training nodes [S, m, C] → cross entropy [S].

        Returns:
            The losses [S].
        """
        losses = objective(self("train", streams))
        losses.sum().backward()
        return losses.detach()

    def to_bfloat16(self) -> None:
        """Keep and multiply dense inputs in bfloat16 from now on; parameters stay float32."""
        raise NotImplementedError(f"{type(self).__name__} has no form in bfloat16")

    def replace(self, values: Mapping[str, Tensor]) -> None:
        """Replace the parameters by new ones, of any number of members.

        They are new objects, because autograd remembers the shape of a parameter that it has seen.
        """
        for name, value in values.items():
            owner, _, attribute = name.rpartition(".")
            setattr(self.get_submodule(owner), attribute, nn.Parameter(value))


def xavier_uniform(shape: tuple[int, int], generators: Sequence[torch.Generator], gain: float) -> Tensor:
    """Xavier-uniform weights [S, fan_in, fan_out], each seed drawn from its own CPU generator."""
    bound = gain * math.sqrt(6.0 / (shape[0] + shape[1]))
    return torch.stack([torch.empty(shape).uniform_(-bound, bound, generator=g) for g in generators])


def neighbourhood(operator: sp.csr_array, nodes: np.ndarray) -> tuple[sp.csr_array, np.ndarray]:
    """The rows of an operator for some nodes, restricted to the columns that these rows use.

    Returns:
        (P [m, r], columns [r]): ``operator[nodes] @ H == P @ H[columns]`` exactly.
    """
    rows = sp.csr_array(operator[nodes])
    columns = np.unique(rows.indices)
    return sp.csr_array(rows[:, columns]), columns


@dataclass(frozen=True)
class Part:
    """One part of the split as a layered network sees it.

    Attributes:
        input: G on the rows that layer 2 needs.
        operators: P of layer 2, 3, ..., each on the rows that the next layer needs; the last is for the m nodes.
    """

    input: Input
    operators: tuple[SparseOperator, ...]


def layer_rows(
    operator: sp.csr_array, nodes: np.ndarray, layers: int
) -> tuple[list[sp.csr_array], np.ndarray]:
    """P of layer 2 to ``layers`` for some nodes, each restricted to the rows that the layer above reads.

    Returns:
        (operators in the order they are applied, rows of G [r] that layer 1 needs).
    """
    operators: list[sp.csr_array] = []
    rows = nodes
    for _ in range(layers - 1):
        part, rows = neighbourhood(operator, rows)
        operators.insert(0, part)
    return operators, rows


class LayeredNetwork(StackedNetwork):
    """H₁ = ReLU(drop(G) W₁ + b₁), H_l = ReLU(P drop(H_{l-1}) W_l + b_l), the last without ReLU, for S seeds.

    G is the aggregated input of layer 1 and P the propagation of the other layers, both fixed. Only the rows of G in
    the neighbourhood of the nodes of a part are multiplied, which is exact. The paper's network has two layers:
    logits = P drop(H₁) W₂ + b₂.

    Args:
        parts: for every part of the split its rows of G and P.
        sizes: (d, h, ..., C), one more than there are layers.
        seeds: seeds of the initial weights, one per member of the stack.
        rates: dropout rates of the input and of the hidden layers.
        gain: gain of the Xavier-uniform initialisation.
        bias: whether the layers have biases (after aggregation, initially 0).
    """

    def __init__(
        self,
        parts: Mapping[str, Part],
        sizes: Sequence[int],
        seeds: Sequence[int],
        rates: tuple[float, float],
        gain: float,
        bias: bool,
        device: torch.device,
    ) -> None:
        super().__init__()
        self.parts, self.rates, self.layers = dict(parts), rates, len(sizes) - 1
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        for layer, shape in enumerate(pairwise(sizes), start=1):
            weight = nn.Parameter(xavier_uniform(shape, generators, gain).to(device))
            self.register_parameter(f"weight{layer}", weight)
        for layer, width in enumerate(sizes[1:], start=1):
            own = nn.Parameter(torch.zeros(len(seeds), 1, width, device=device)) if bias else None
            self.register_parameter(f"bias{layer}", own)

    def forward(self, part: str, streams: DropoutStreams | None) -> Tensor:
        return self._propagated(self._last_hidden(part, streams), part, self.layers, streams)

    def hidden(self, part: str) -> Tensor:
        return self._last_hidden(part, None)

    def _last_hidden(self, part: str, streams: DropoutStreams | None) -> Tensor:
        """H_{L-1} before dropout."""
        first = self.parts[part].input(self._weight(1), streams, self.rates[0])
        values = torch.relu(self._biased(first, 1))
        for layer in range(2, self.layers):
            values = torch.relu(self._propagated(values, part, layer, streams))
        return values

    def _propagated(self, values: Tensor, part: str, layer: int, streams: DropoutStreams | None) -> Tensor:
        """P drop(H) W + b of a layer after the first."""
        values = dropout(values, streams, self.rates[1])
        operator = self.parts[part].operators[layer - 2]
        return self._biased(operator(torch.bmm(values, self._weight(layer))), layer)

    def to_bfloat16(self) -> None:
        for part in self.parts.values():
            if isinstance(part.input, DenseInput):  # torch has no sparse product in bfloat16
                part.input.to_bfloat16()

    def _weight(self, layer: int) -> Tensor:
        weight: Tensor = getattr(self, f"weight{layer}")
        return weight

    def _biased(self, values: Tensor, layer: int) -> Tensor:
        bias = getattr(self, f"bias{layer}")
        return values if bias is None else values + bias
