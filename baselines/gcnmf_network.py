"""The network of GCNmf: the expected ReLU of a Gaussian mixture, then a second graph convolution; for many seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pagnn_bench.baselines.gcnmf_layers import AggregatedLayer, FirstLayer, Mixture
from pagnn_bench.nn.dropout import DropoutStreams, dropout
from pagnn_bench.nn.network import StackedNetwork, xavier_uniform
from pagnn_bench.nn.sparse import SparseOperator


class _ExpectedReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, s: Tensor) -> Tensor:
        sigma = s.clamp_min(1e-20).sqrt()  # so narrow for s = 0 that the result is the plain ReLU
        # Beyond 13 standard deviations φ is 0 and Φ a step in floating point, and exp would be slow.
        w = (u / sigma).clamp_(-13, 13)
        cdf = torch.erf(w * math.sqrt(0.5)).add_(1).mul_(0.5)
        density = w.square_().mul_(-0.5).exp_().mul_(1 / math.sqrt(2 * math.pi))
        out = (u * cdf).addcmul_(sigma, density)
        if any(ctx.needs_input_grad):
            # φ(w)/(2σ) has no limit at u = s = 0; a unit without variance is a ReLU, which is independent of s.
            ctx.save_for_backward(cdf, density.div_(sigma).mul_(0.5).masked_fill_(s == 0, 0.0))
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        cdf, slope = ctx.saved_tensors
        return grads[0] * cdf, grads[0] * slope


def expected_relu(u: Tensor, s: Tensor) -> Tensor:
    """E[ReLU(Z)] of Z ~ N(u, s), element by element; s = 0 is the plain ReLU.

    √s (φ(w) + w Φ(w)) with w = u/√s; its derivatives are Φ(w) by u and φ(w)/(2√s) by s. They are written out because
    automatic differentiation of the formula gives 0/0 where s = 0.
    """
    return _ExpectedReLU.apply(u, s)


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
        u, s, gamma, pairs = layer(self.weight1, mixture, streams, self.rate)
        bias1 = source.scales[0] * self.bias1
        if pairs is None:
            return (gamma[..., None] * expected_relu(u + bias1[:, :, None], s)).sum(2)
        bias = pairs.spread(bias1.expand(*pairs.needed.shape[:2], -1))
        return pairs.collect(gamma[:, None] * expected_relu(u + bias, s))
