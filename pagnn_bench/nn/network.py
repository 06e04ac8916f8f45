"""Networks whose parameters are stacked over seeds, and the two-layer network that most methods share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from pagnn_bench.nn.dropout import DropoutStreams, dropout
from pagnn_bench.nn.inputs import Input
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

    def replace(self, values: Mapping[str, Tensor]) -> None:
        """Put new parameters, of any number of members, in the place of the present ones.

        New objects, because autograd remembers the shape of a parameter that it has met.
        """
        for name, value in values.items():
            owner, _, attribute = name.rpartition(".")
            setattr(self.get_submodule(owner), attribute, nn.Parameter(value))


def xavier_uniform(shape: tuple[int, int], generators: Sequence[torch.Generator], gain: float) -> Tensor:
    """Xavier-uniform weights [S, fan_in, fan_out], each seed drawn from its own CPU generator."""
    bound = gain * math.sqrt(6.0 / (shape[0] + shape[1]))
    return torch.stack([torch.empty(shape).uniform_(-bound, bound, generator=g) for g in generators])


def neighbourhood(operator: sp.csr_array, nodes: np.ndarray) -> tuple[sp.csr_array, np.ndarray]:
    """The rows of an operator that some nodes need, on the columns that these rows touch.

    Returns:
        (P [m, r], columns [r]): ``operator[nodes] @ H == P @ H[columns]`` exactly.
    """
    rows = sp.csr_array(operator[nodes])
    columns = np.unique(rows.indices)
    return sp.csr_array(rows[:, columns]), columns


@dataclass(frozen=True)
class Part:
    """One part of the split as the two-layer network sees it: layer-1 input [r, d] and layer-2 operator [m, r]."""

    input: Input
    operator: SparseOperator


class TwoLayer(StackedNetwork):
    """H = ReLU(drop(G) W₁ + b₁), logits = P drop(H) W₂ + b₂, for S seeds.

    G is the aggregated input of layer 1 and P the propagation of layer 2, both fixed. Only the rows of G next to the
    nodes in question are ever multiplied, which is exact.

    Args:
        parts: for every part of the split its rows of G and P.
        sizes: (d, h, C).
        seeds: seeds of the initial weights, one per member of the stack.
        rates: dropout rates of the input and of the hidden layer.
        gain: gain of the Xavier-uniform initialisation.
        bias: whether b₁ and b₂ exist (after aggregation, initially 0).
    """

    def __init__(
        self,
        parts: Mapping[str, Part],
        sizes: tuple[int, int, int],
        seeds: Sequence[int],
        rates: tuple[float, float],
        gain: float,
        bias: bool,
        device: torch.device,
    ) -> None:
        super().__init__()
        self.parts, self.rates = dict(parts), rates
        features, hidden, classes = sizes
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.weight1 = nn.Parameter(xavier_uniform((features, hidden), generators, gain).to(device))
        self.weight2 = nn.Parameter(xavier_uniform((hidden, classes), generators, gain).to(device))
        self.bias1, self.bias2 = (
            nn.Parameter(torch.zeros(len(seeds), 1, width, device=device)) if bias else None
            for width in (hidden, classes)
        )

    def forward(self, part: str, streams: DropoutStreams | None) -> Tensor:
        source = self.parts[part]
        hidden = source.input(self.weight1, streams, self.rates[0])
        hidden = torch.relu(hidden if self.bias1 is None else hidden + self.bias1)
        hidden = dropout(hidden, streams, self.rates[1])
        logits = source.operator(torch.bmm(hidden, self.weight2))
        return logits if self.bias2 is None else logits + self.bias2
