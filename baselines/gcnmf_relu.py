"""The expected ReLU of a Gaussian, and of GCNmf's mixture where whole rows are missing.

Notation as in :mod:`pagnn_bench.baselines.gcnmf_layers`: r rows, K components, h hidden units, S seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

# On a CPU, so many values are computed at a time, in memory that is used again for the next ones. A step for the whole
# stack at once takes twice as long, most of it to fetch fresh memory.
BLOCK = 1 << 16


def expected_relu(u: Tensor, s: Tensor) -> Tensor:
    """E[ReLU(Z)] of Z ~ N(u, s), element by element; s = 0 is the plain ReLU.

    √s (φ(w) + w Φ(w)) with w = u/√s; its derivatives are Φ(w) by u and φ(w)/(2√s) by s. They are written out because
    automatic differentiation of the formula gives 0/0 where s = 0.
    """
    return _ExpectedReLU.apply(u, s)


class OuterProducts(NamedTuple):
    """u_ik = base_i + share_i first_mk and s_ik = share2_i second_mk for row i, with m = i modulo M.

    base [S, r, h]; share, share2 [r]; first, second [S, M, K, h].
    """

    base: Tensor
    share: Tensor
    share2: Tensor
    first: Tensor
    second: Tensor


def mixture_relu(outer: OuterProducts, gamma: Tensor) -> Tensor:
    """Σ_k γ_ik E[ReLU(N(u_ik, s_ik))], [S, r, h], for γ [S, r, K]; u and s are never made in full."""
    base, share, share2, first, second = outer
    rows = len(share)
    more = -rows % first.shape[1]  # then every mask has equally many rows
    if more:
        gamma, base = (F.pad(values, (0, 0, 0, more)) for values in (gamma, base))
        share, share2 = F.pad(torch.stack((share, share2)), (0, more))
    return _MixtureReLU.apply(gamma, base, share, share2, first, second)[:, :rows]


def _evaluate(
    u: Tensor,
    s: Tensor,
    sigma: Tensor | None = None,
    cdf: Tensor | None = None,
    density: Tensor | None = None,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """√s, Φ(w), φ(w) and E[ReLU(N(u, s))] = u Φ(w) + √s φ(w), of one shape, in these arrays if they are given."""
    sigma = torch.clamp_min(
        s, 1e-20, out=sigma
    ).sqrt_()  # so narrow for s = 0 that the result is the plain ReLU
    # Beyond 13 standard deviations φ is 0 and Φ a step in floating point, and exp would be slow.
    w = torch.div(u, sigma, out=density).clamp_(-13, 13)
    cdf = torch.mul(w, math.sqrt(0.5), out=cdf).erf_().add_(1).mul_(0.5)
    density = w.square_().mul_(-0.5).exp_().mul_(1 / math.sqrt(2 * math.pi))
    return sigma, cdf, density, torch.mul(u, cdf, out=out).addcmul_(sigma, density)


def _slope(s: Tensor, sigma: Tensor, density: Tensor) -> Tensor:
    """φ(w)/(2√s), written over φ(w). It has no limit at u = s = 0; without variance this is a ReLU, free of s."""
    return density.div_(sigma).mul_(0.5).masked_fill_(s == 0, 0.0)


class _ExpectedReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, s: Tensor) -> Tensor:
        sigma, cdf, density, out = _evaluate(u, s)
        if any(ctx.needs_input_grad):
            ctx.save_for_backward(cdf, _slope(s, sigma, density))
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        cdf, slope = ctx.saved_tensors
        return grads[0] * cdf, grads[0] * slope


class _MixtureReLU(torch.autograd.Function):
    """:func:`mixture_relu`, block by block; for the backward pass it keeps Φ, φ/(2√s) and the expected ReLU."""

    @staticmethod
    def forward(ctx: Any, gamma: Tensor, *factors: Tensor) -> Tensor:
        outer = OuterProducts(*factors)
        trains, out = any(ctx.needs_input_grad), torch.empty_like(outer.base)
        kept = gamma.new_empty(3, *gamma.shape, out.shape[2]) if trains else None
        buffers = _Buffers(3 if trains else 6)
        for block in _blocks(gamma, outer):
            u, s, sigma, *rest = buffers.like(block.of(gamma), out.shape[2])
            cdf, density, relu = rest if kept is None else (block.of(own) for own in kept)
            base, share, share2 = block.of(outer.base), block.share(outer.share), block.share(outer.share2)
            torch.mul(share, block.pooled(outer.first), out=u).add_(base[..., None, :])
            torch.mul(share2, block.pooled(outer.second), out=s)
            _evaluate(u, s, sigma, cdf, density, relu)
            # u is no longer needed.
            torch.sum(torch.mul(block.of(gamma)[..., None], relu, out=u), -2, out=block.of(out))
            if trains:
                _slope(s, sigma, density)
        if kept is not None:
            ctx.save_for_backward(gamma, *factors, kept)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        gamma, *factors, kept = ctx.saved_tensors
        outer = OuterProducts(*factors)
        grad_gamma, grad_base = torch.empty_like(gamma), torch.empty_like(outer.base)
        grad_first, grad_second = torch.zeros_like(outer.first), torch.zeros_like(outer.second)
        buffers = _Buffers(2)
        for block in _blocks(gamma, outer):
            scaled, product = buffers.like(block.of(gamma), outer.base.shape[2])
            cdf, slope, relu = (block.of(own) for own in kept)
            grad = block.of(grads[0])[..., None, :]
            torch.sum(torch.mul(relu, grad, out=product), -1, out=block.of(grad_gamma))
            torch.mul(block.of(gamma)[..., None], grad, out=scaled)
            torch.mul(scaled, cdf, out=product)
            torch.sum(product, -2, out=block.of(grad_base))
            block.pooled(grad_first).add_(product.mul_(block.share(outer.share)).sum(1, keepdim=True))
            torch.mul(scaled, slope, out=product)
            block.pooled(grad_second).add_(product.mul_(block.share(outer.share2)).sum(1, keepdim=True))
        return grad_gamma, grad_base, None, None, grad_first, grad_second


class _Buffers:
    """Memory for the values of one block, used again for the next: fresh memory costs more than what is done in it."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.memory: Tensor | None = None

    def like(self, gamma: Tensor, width: int) -> Iterator[Tensor]:
        """Arrays of γ's shape and the width of the hidden layer."""
        shape = (self.count, *gamma.shape, width)
        if self.memory is None or self.memory.numel() < math.prod(shape):
            self.memory = gamma.new_empty(math.prod(shape))
        return iter(self.memory[: math.prod(shape)].view(shape))


class _Block(NamedTuple):
    """Some rows of some seeds, as [members, turns, M]: a turn has one row for each of the M dropout masks."""

    members: slice
    rows: slice
    masks: int

    def of(self, values: Tensor) -> Tensor:
        """The part of [S, r, ...]: [members, turns, M, ...]."""
        return values[self.members, self.rows].unflatten(1, (-1, self.masks))

    def share(self, values: Tensor) -> Tensor:
        """The part of [r], the same for all members, components and units: [turns, M, 1, 1]."""
        return values[self.rows].view(-1, self.masks, 1, 1)

    def pooled(self, values: Tensor) -> Tensor:
        """The part of [S, M, K, h], the same for all turns: [members, 1, M, K, h]."""
        return values[self.members, None]


def _blocks(gamma: Tensor, outer: OuterProducts) -> Iterator[_Block]:
    """All rows of all seeds; on a CPU block by block, elsewhere at once."""
    members, count, components = gamma.shape
    masks, width = outer.first.shape[1], components * outer.base.shape[2]
    limit = BLOCK if gamma.device.type == "cpu" else gamma.numel() * width
    together, step = max(1, limit // (count * width)), max(1, limit // (masks * width)) * masks
    for member in range(0, members, together):
        for row in range(0, count, step):
            yield _Block(slice(member, member + together), slice(row, row + step), masks)
