"""Adam for a stack of networks, whose members may differ in learning rate and weight decay."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from pagnn_bench.nn.network import StackedNetwork

# The parameters under the L2 penalty: all of them, as in GCNmf's code and that of PaGNN's authors, or the weights of
# the first layer, as in Kipf and Welling's.
DECAYS = ("all", "first")
FIRST_LAYER = ("weight1",)  # of networks that do not name it themselves
BETAS, EPSILON = (0.9, 0.999), 1e-8  # torch's defaults, which are those of the Adam paper


class StackedAdam:
    """Adam with coupled L2 over the stacked parameters [S, ...] of a network.

    Neighbours in the stack that share a setting form one slice of every parameter, and torch's fused Adam works on
    slices: so a member gets the same digits as in a stack with only its own setting.

    The moments are kept here and not in a ``torch.optim.Adam``, which loads torch's compiler when it is first made:
    that took two of the five seconds of processor time of a short run.

    Args:
        network: its parameters have the members as first dimension.
        rates, decays: learning rate and weight decay of every member.
        decay: which parameters are decayed, one of ``DECAYS``.
    """

    def __init__(
        self, network: StackedNetwork, rates: Sequence[float], decays: Sequence[float], decay: str
    ) -> None:
        self.settings, self.decay = list(zip(rates, decays)), decay
        # Parameters without a gradient (the buffers of a module) are not optimised.
        self.parameters = {name: p for name, p in network.named_parameters() if p.requires_grad}
        first_layer = getattr(network, "first_layer", FIRST_LAYER)
        sizes = [len(list(same)) for _, same in groupby(self.settings)]
        ends = np.cumsum([0, *sizes])
        self.slices = [slice(int(first), int(last)) for first, last in pairwise(ends)]
        self.moments = {name: _Moments.like(p) for name, p in self.parameters.items()}
        self.groups: dict[tuple[float, float], list[tuple[str, slice]]] = {}  # one fused pass each
        for part in self.slices:
            rate, weight_decay = self.settings[part.start]
            for name in self.parameters:
                decayed = decay == "all" or name in first_layer
                group = self.groups.setdefault((rate, weight_decay if decayed else 0.0), [])
                group.append((name, part))

    def step(self) -> None:
        """One step along the gradients that the network's parameters hold."""
        moved = {name: p.grad for name, p in self.parameters.items() if p.grad is not None}
        for name in moved:
            self.moments[name].steps.add_(1)
        for (rate, weight_decay), places in self.groups.items():
            places = [(name, part) for name, part in places if name in moved]
            if not places:
                continue
            own = [(self.moments[name], part) for name, part in places]
            torch._fused_adam_(
                [self.parameters[name].detach()[part] for name, part in places],
                [moved[name][part] for name, part in places],
                [moments.mean[part] for moments, part in own],
                [moments.square[part] for moments, part in own],
                [],
                [moments.steps for moments, _ in own],
                lr=rate,
                beta1=BETAS[0],
                beta2=BETAS[1],
                weight_decay=weight_decay,
                eps=EPSILON,
                amsgrad=False,
                maximize=False,
            )

    def selected(self, network: StackedNetwork, keep: np.ndarray) -> Self:
        """The optimiser of the remaining members, whose parameters the network already holds."""
        rates, decays = zip(*(self.settings[k] for k in keep))
        optimiser = type(self)(network, rates, decays, self.decay)
        optimiser.moments = {name: moments.selected(keep) for name, moments in self.moments.items()}
        return optimiser


class _Moments(NamedTuple):
    """Adam's running means of a parameter's gradients and of their squares, [S, ...], and its steps so far."""

    mean: Tensor
    square: Tensor
    steps: Tensor

    @classmethod
    def like(cls, parameter: Tensor) -> Self:
        values = parameter.detach()
        return cls(torch.zeros_like(values), torch.zeros_like(values), values.new_zeros(()))

    def selected(self, keep: np.ndarray) -> Self:
        index = torch.from_numpy(keep).to(self.mean.device)
        mean, square = (values.index_select(0, index) for values in (self.mean, self.square))
        return type(self)(mean, square, self.steps)
