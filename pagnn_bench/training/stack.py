"""The seeds that train together: which are still in training, and the best weights of each so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.network import StackedNetwork
from pagnn_bench.training.optimiser import StackedAdam
from pagnn_bench.training.stopping import StoppingRule


@dataclass
class Stack:
    """The seeds still in training, and the best weights of each so far.

    ``place`` says where they are in the network. Between two looks at the scores, the network also trains members that
    are done; they leave it in :meth:`shrink`.
    """

    network: StackedNetwork
    optimizer: StackedAdam
    streams: DropoutStreams
    rule: StoppingRule
    alive: np.ndarray  # position of each member in the original order
    place: np.ndarray  # position of each member in the network
    kept: list[dict[str, Any]]  # epoch and scores of the best weights
    best: dict[str, Tensor] = field(default_factory=dict)

    def weights(self) -> dict[str, Tensor]:
        """The current weights of all members of the network."""
        return {name: p.detach() for name, p in self.network.named_parameters()}

    def remember(self, members: np.ndarray, weights: Mapping[str, Tensor]) -> None:
        """Keep a copy of the given weights of these members (bool [S])."""
        if not self.best:
            index = self._index(self.place)
            self.best = {name: p.index_select(0, index) for name, p in weights.items()}
            return
        index, source = self._index(np.flatnonzero(members)), self._index(self.place[members])
        for name, p in weights.items():
            self.best[name].index_copy_(0, index, p.index_select(0, source))

    def select(self, keep: np.ndarray) -> None:
        """Continue with only these members: patience and best weights; the network follows in :meth:`shrink`."""
        index = self._index(keep)
        self.best = {name: b.index_select(0, index) for name, b in self.best.items()}
        self.rule.select(keep)
        self.alive, self.place = self.alive[keep], self.place[keep]
        self.kept = [self.kept[k] for k in keep]

    def best_of(self, member: int) -> dict[str, Tensor]:
        """A copy of the best weights of one member, by name, [1, ...]."""
        return {name: values[member : member + 1].clone() for name, values in self.best.items()}

    def shrink(self) -> None:
        """Remove members that are done from the network: weights, optimiser state and dropout streams."""
        if len(self.place) == len(self.streams):
            return
        index = self._index(self.place)
        self.network.replace({name: p.index_select(0, index) for name, p in self.weights().items()})
        self.optimizer = self.optimizer.selected(self.network, self.place)
        self.streams.select(self.place.tolist())
        self.place = np.arange(len(self.place))

    def _index(self, places: np.ndarray) -> Tensor:
        return torch.from_numpy(places).to(self.streams.device, non_blocking=True)
