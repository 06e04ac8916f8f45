"""A short training on a device, and the numbers to compare."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from pagnn_bench.bench.contenders import MASK, unstopped
from pagnn_bench.check.words import host_drawn
from pagnn_bench.config.identity import Cell
from pagnn_bench.engine.prepare import MaskedCell, Preparation, hide_mask, make_network, prepare
from pagnn_bench.nn.network import PARTS, StackedNetwork
from pagnn_bench.training.loop import train

SEEDS = 3  # stacked
EPOCHS = 5


@dataclass(frozen=True)
class Observation:
    """The results of a device, in the order of their computation.

    Attributes:
        filled: X̂ [n, d] of a method that fills in attributes, else empty.
        logits: [S, n, C] before training.
        gradients: of the first training step, one array per parameter.
        losses: [S, epochs], each before the step of its epoch.
        trained: logits [S, n, C] after the last epoch.
    """

    filled: list[np.ndarray]
    logits: list[np.ndarray]
    gradients: list[np.ndarray]
    losses: list[np.ndarray]
    trained: list[np.ndarray]


QUANTITIES = tuple(Observation.__dataclass_fields__)


def set_up(cell: Cell, device: torch.device) -> tuple[MaskedCell, Preparation]:
    """A cell on its first mask, prepared for a device with the CPU's random numbers."""
    with host_drawn():
        masked = hide_mask(cell, MASK, device)
        return masked, prepare(masked)


def observe(masked: MaskedCell, preparation: Preparation) -> Observation:
    """Train for a few epochs on the device of the preparation, with the CPU's random numbers."""
    with host_drawn():
        network = _network(masked, preparation)
        logits = _logits(network)
        _train(network, masked, epochs=1)  # leaves the gradients of its step in the parameters
        gradients = [_array(p.grad) for p in network.parameters() if p.grad is not None]
        network = _network(masked, preparation)
        losses = _train(network, masked, EPOCHS)
        trained = _logits(network)
    filled = preparation.prepared.filled
    dense = [] if filled is None else [filled if isinstance(filled, np.ndarray) else filled.toarray()]
    return Observation(dense, [logits], gradients, [losses], [trained])


def _network(masked: MaskedCell, preparation: Preparation) -> StackedNetwork:
    weights = [masked.cell.trial_seed("weights", MASK, seed) for seed in range(SEEDS)]
    return make_network(preparation.prepared, weights, masked.protocol)


def _train(network: StackedNetwork, masked: MaskedCell, epochs: int) -> np.ndarray:
    """Train all seeds for exactly ``epochs``; return their losses [S, epochs], NaN where missing."""
    seeds = [masked.cell.trial_seed("dropout", MASK, seed) for seed in range(SEEDS)]
    protocol, device = unstopped(masked.protocol, epochs), masked.context.device
    result = train(network, masked.graph, protocol, seeds, device, keep_curve=True)
    return np.array([record["curve"] for record in result.records], dtype=float)


def _logits(network: StackedNetwork) -> np.ndarray:
    with torch.no_grad():
        return _array(torch.cat([network(part, None) for part in PARTS], dim=1))


def _array(values: torch.Tensor | None) -> np.ndarray:
    assert values is not None
    return values.detach().cpu().numpy()
