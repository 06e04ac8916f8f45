"""The network of D2PT for stacks of seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pagnn_bench.nn.dropout import DropoutStreams, dropout
from pagnn_bench.nn.inputs import Input
from pagnn_bench.nn.network import StackedNetwork


@dataclass(frozen=True)
class Alignment:
    """What training uses besides the training nodes.

    Attributes:
        first, second: attributes of all nodes, spread over the given graph and over the graph of similar nodes.
        nodes, labels: training nodes, int64 [m].
        augmented: λ_a, weight of the cross entropy of the second.
        weight: λ_p, weight of the distance of the prototypes.
        temperature: τ.
    """

    first: Input
    second: Input
    nodes: Tensor
    labels: Tensor
    augmented: float
    weight: float
    temperature: float


class D2PTNetwork(StackedNetwork):
    """H = ReLU(drop(X) W₁ + b₁), logits = drop(H) W₂ + b₂, E = drop(H) W₃ + b₃, and prototypes of the classes.

    The prototype of a class is the mean of the rows of E over the nodes that the first channel assigns to it,
    weighted by the first channel's confidence (1 at training nodes). With unit prototypes a_c of the second channel
    and p_c of the first, the distance is the cross entropy of telling a_c·p_c / τ from a_c·a_k / τ and a_c·p_k / τ of
    all other classes k.

    Args:
        inputs: X of the nodes of every part.
        alignment: None to train on the training nodes alone.
        sizes: (d, h, C).
        seeds: seeds of the initial weights, one per member of the stack.
        rate: dropout rate.
        gain: factor on the initial weights, which lie in ±1/√inputs; biases in ±1/√outputs.
    """

    def __init__(
        self,
        inputs: Mapping[str, Input],
        alignment: Alignment | None,
        sizes: tuple[int, int, int],
        seeds: Sequence[int],
        rate: float,
        gain: float,
        device: torch.device,
    ) -> None:
        super().__init__()
        self.inputs, self.alignment, self.rate = dict(inputs), alignment, rate
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        width, hidden, classes = sizes
        shapes = {"1": (width, hidden), "2": (hidden, classes)}
        if alignment is not None and alignment.weight > 0:
            shapes["3"] = (hidden, hidden)
        for layer, (fan_in, fan_out) in shapes.items():
            for name, shape, bound in (
                ("weight", (fan_in, fan_out), gain / math.sqrt(fan_in)),
                ("bias", (1, fan_out), 1 / math.sqrt(fan_out)),
            ):
                drawn = [torch.empty(shape).uniform_(-bound, bound, generator=g) for g in generators]
                self.register_parameter(name + layer, nn.Parameter(torch.stack(drawn).to(device)))

    def forward(self, part: str, streams: DropoutStreams | None) -> Tensor:
        return self._logits(self._hidden(self.inputs[part], streams), streams)

    def backward(self, streams: DropoutStreams, objective: Callable[[Tensor], Tensor]) -> Tensor:
        if self.alignment is None:
            return super().backward(streams, objective)
        alignment, losses = self.alignment, torch.zeros((), device=self.weight1.device)
        channels = []
        for source, weight in ((alignment.first, 1.0), (alignment.second, alignment.augmented)):
            hidden = self._hidden(source, streams)
            logits = self._logits(hidden, streams)
            losses = losses + weight * objective(logits[:, alignment.nodes])
            embedded = None
            if alignment.weight > 0:
                embedded = self._layer(dropout(hidden, streams, self.rate), "3")
            channels.append((logits, embedded))
        (logits, first), (_, second) = channels
        if first is not None and second is not None:
            members = self._members(logits)
            distance = prototype_distance(members @ first, members @ second, alignment.temperature)
            losses = losses + alignment.weight * distance
        losses.sum().backward()
        return losses.detach()

    def _members(self, logits: Tensor) -> Tensor:
        """Weights of the nodes in the class means, [S, C, n]; the rows of classes that have nodes sum to 1."""
        assert self.alignment is not None
        nodes = self.alignment.nodes
        sure, label = torch.softmax(logits, dim=-1).max(dim=-1)
        known = torch.zeros_like(sure[0], dtype=torch.bool).index_fill(0, nodes, True)
        label = label.index_copy(1, nodes, self.alignment.labels.expand(len(label), -1))
        weight = F.one_hot(label, logits.shape[-1]) * sure.masked_fill(known, 1)[..., None]
        return (weight / weight.sum(dim=1, keepdim=True).clamp(min=1e-12)).mT

    def _hidden(self, source: Input, streams: DropoutStreams | None) -> Tensor:
        return torch.relu(source(self.weight1, streams, self.rate) + self.bias1)

    def _logits(self, hidden: Tensor, streams: DropoutStreams | None) -> Tensor:
        return self._layer(dropout(hidden, streams, self.rate), "2")

    def _layer(self, values: Tensor, layer: str) -> Tensor:
        weight, bias = (getattr(self, name + layer) for name in ("weight", "bias"))
        result: Tensor = torch.bmm(values, weight) + bias
        return result


def prototype_distance(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """The distance of :class:`D2PTNetwork` between prototypes p and a, each [S, C, h], averaged over classes → [S]."""
    p, a = F.normalize(first, dim=-1), F.normalize(second, dim=-1)
    within, across = a @ a.mT / temperature, a @ p.mT / temperature  # [S, C, C]
    same = torch.eye(p.shape[1], dtype=torch.bool, device=p.device)
    everything = torch.cat((within.masked_fill(same, -torch.inf), across), dim=-1)
    return (everything.logsumexp(dim=-1) - across.diagonal(dim1=-2, dim2=-1)).mean(dim=-1)
