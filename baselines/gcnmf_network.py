"""The network of GCNmf: a layer on a Gaussian mixture, then a second graph convolution; for many seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pagnn_bench.baselines.gcnmf_layers import AggregatedLayer, FirstLayer, Mixture
from pagnn_bench.nn.dropout import DropoutStreams, dropout
from pagnn_bench.nn.network import StackedNetwork, xavier_uniform
from pagnn_bench.nn.sparse import SparseOperator


@dataclass(frozen=True)
class MixturePart:
    """One part of the split: first layers for training and evaluation, layer-2 operator [m, r], scales of the biases.

    A bias after aggregation has scale 1; before it, Â(1 b) = d̂ ⊗ b, so the scales are d̂ [r, 1] and [m, 1].
    """

    train: FirstLayer
    evaluate: AggregatedLayer
    operator: SparseOperator
    scales: tuple[Tensor | float, Tensor | float]


class GCNmfNetwork(StackedNetwork):
    """H = Σ_k γ_ik E[ReLU(N(u_k + b₁, s_k))], logits = Â drop(H) W₂ + b₂, for S seeds; everything is trained.

    Args:
        parts: for every part of the split its layers.
        mixture: initial parameters of one seed: log π [K], μ [K, d], log σ² [K, d].
        hidden: h.
        classes: C.
        seeds: seeds of the initial weights, one per member of the stack.
        rate: dropout rate of the input and of the hidden layer.
        gain: gain of the Xavier-uniform initialisation.
    """

    def __init__(
        self,
        parts: Mapping[str, MixturePart],
        mixture: Mixture,
        hidden: int,
        classes: int,
        seeds: Sequence[int],
        rate: float,
        gain: float,
        device: torch.device,
    ) -> None:
        super().__init__()
        self.parts, self.rate = dict(parts), rate
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        attributes, members = mixture.mu.shape[1], len(seeds)
        self.weight1 = nn.Parameter(xavier_uniform((attributes, hidden), generators, gain).to(device))
        self.weight2 = nn.Parameter(xavier_uniform((hidden, classes), generators, gain).to(device))
        self.bias1 = nn.Parameter(torch.zeros(members, 1, hidden, device=device))
        self.bias2 = nn.Parameter(torch.zeros(members, 1, classes, device=device))
        self.log_pi, self.mu, self.log_sigma2 = (
            nn.Parameter(p.to(device).repeat(members, *[1] * p.dim())) for p in mixture
        )

    def to_bfloat16(self) -> None:
        for part in self.parts.values():
            part.evaluate.to_bfloat16()  # also the layer for training, except in the public code's form

    def forward(self, part: str, streams: DropoutStreams | None) -> Tensor:
        source, hidden = self.parts[part], self._hidden(part, streams)
        product = torch.bmm(dropout(hidden, streams, self.rate), self.weight2)
        return source.operator(product) + source.scales[1] * self.bias2

    def hidden(self, part: str) -> Tensor:
        return self._hidden(part, None)

    def _hidden(self, part: str, streams: DropoutStreams | None) -> Tensor:
        """H before dropout."""
        source = self.parts[part]
        layer = source.evaluate if streams is None else source.train
        mixture = Mixture(self.log_pi, self.mu, self.log_sigma2)
        return layer(self.weight1, source.scales[0] * self.bias1, mixture, streams, self.rate).hidden()
