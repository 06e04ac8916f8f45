"""Adam for a stack of networks, whose members may have learning rates and weight decays of their own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Self

import numpy as np
import torch
from torch import Tensor

from pagnn_bench.nn.network import StackedNetwork

# Which parameters the L2 penalty is on: all of them, as in GCNmf's code and that of PaGNN's authors, or the weights of
# the first layer, as in Kipf and Welling's.
DECAYS = ("all", "first")
FIRST_LAYER = ("weight1",)  # of networks that do not name it themselves
MOMENTS = ("exp_avg", "exp_avg_sq")


class StackedAdam:
    """Adam with coupled L2 over the stacked parameters [S, ...] of a network.

    Neighbours in the stack that share a setting are one slice of every parameter, and a slice is what torch's fused
    Adam sees: so a member gets the digits that it gets in a stack of its own setting only.

    Args:
        network: its parameters have the members as first dimension.
        rates, decays: learning rate and weight decay of every member.
        decay: which parameters are decayed, one of ``DECAYS``.
    """

    def __init__(
        self, network: StackedNetwork, rates: Sequence[float], decays: Sequence[float], decay: str
    ) -> None:
        self.settings, self.decay = list(zip(rates, decays)), decay
        # What has no gradient (the buffers of a module) is not the optimiser's.
        self.parameters = {name: p for name, p in network.named_parameters() if p.requires_grad}
        first_layer = getattr(network, "first_layer", FIRST_LAYER)
        sizes = [len(list(same)) for _, same in groupby(self.settings)]
        ends = np.cumsum([0, *sizes])
        self.slices = [slice(int(first), int(last)) for first, last in pairwise(ends)]
        # Leaves of their own that share the memory of a parameter.
        self.views = {name: [p.detach()[part] for part in self.slices] for name, p in self.parameters.items()}
        groups: dict[tuple[float, float], list[Tensor]] = {}  # one fused pass each
        for name, k in self._places():
            rate, weight_decay = self.settings[self.slices[k].start]
            decayed = decay == "all" or name in first_layer
            groups.setdefault((rate, weight_decay if decayed else 0.0), []).append(self.views[name][k])
        self.adam = torch.optim.Adam(
            [{"params": views, "lr": lr, "weight_decay": l2} for (lr, l2), views in groups.items()],
            fused=True,
        )

    def _places(self) -> list[tuple[str, int]]:
        return [(name, k) for k in range(len(self.slices)) for name in self.parameters]

    def step(self) -> None:
        """One step along the gradients that the network's parameters hold."""
        for name, k in self._places():
            grad = self.parameters[name].grad
            self.views[name][k].grad = None if grad is None else grad[self.slices[k]]
        self.adam.step()

    def selected(self, network: StackedNetwork, keep: np.ndarray) -> Self:
        """The optimiser of the members that go on, whose parameters the network holds already."""
        rates, decays = zip(*(self.settings[k] for k in keep))
        after = type(self)(network, rates, decays, self.decay)
        for name in self.parameters:
            states = [self.adam.state[view] for view in self.views[name]]
            if not all(states):  # a parameter without a gradient has no moments
                continue
            moments = {key: _taken([state[key] for state in states], keep) for key in MOMENTS}
            for k, part in enumerate(after.slices):
                own = {key: values[part] for key, values in moments.items()}
                after.adam.state[after.views[name][k]] = {"step": states[0]["step"].clone(), **own}
        return after


def _taken(slices: Sequence[Tensor], keep: np.ndarray) -> Tensor:
    """Some members of a stack that lies in slices."""
    whole = torch.cat(list(slices))
    return whole.index_select(0, torch.from_numpy(keep).to(whole.device))
