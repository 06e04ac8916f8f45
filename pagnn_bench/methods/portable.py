"""One member of a stack as an ordinary torch module, so that its weights can be used without our stacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from torch import Tensor


@dataclass(frozen=True)
class Portable:
    """A module that computes what a member of the stack computes, in evaluation, on the whole graph.

    Attributes:
        module: its class, such as ``torch_geometric.nn.GCN``.
        arguments: of its constructor, by name.
        state: the weights of a member, by their names in the stack, without the stack's dimension → the state dict.
        inputs: returns the arguments of its ``forward``, by name.
    """

    module: str
    arguments: Mapping[str, Any]
    state: Callable[[Mapping[str, Tensor]], dict[str, Tensor]]
    inputs: Callable[[], dict[str, np.ndarray]]


def layer_state(weights: Mapping[str, Tensor], weight: str, bias: str) -> dict[str, Tensor]:
    """The state dict of a chain of layers from a member of :class:`~pagnn_bench.nn.network.LayeredNetwork`.

    Args:
        weights: ``weight1`` [d, h], ``bias1`` [1, h], ``weight2`` and so on.
        weight, bias: their names in the module, with the number of the layer from 0: ``convs.{}.bias``.
    """
    state = {}
    for name, values in weights.items():
        kind = name.rstrip("0123456789")
        layer = int(name.removeprefix(kind)) - 1
        if kind == "weight":
            state[weight.format(layer)] = values.T.contiguous()
        else:
            state[bias.format(layer)] = values.flatten()
    return state


def convolutions(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state dict of ``PaGNN`` and of torch_geometric's ``GCN``."""
    return layer_state(weights, "convs.{}.lin.weight", "convs.{}.bias")


def edge_index(adjacency: sp.csr_array) -> np.ndarray:
    """The edges in both directions, int64 [2, E]."""
    return np.stack(adjacency.tocoo().coords).astype(np.int64)


def dense(features: sp.csr_array | np.ndarray) -> np.ndarray:
    """Features as float32 [n, d]."""
    values = features if isinstance(features, np.ndarray) else features.toarray()
    return np.ascontiguousarray(values, dtype=np.float32)
