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
    """u_ik = base_i + shares_1i first_mk and s_ik = shares_2i second_mk for row i, with m = i modulo M.

    base [S, r, h]; shares [2, r], followed by zeros if M does not divide r; first, second [S, M, K, h].
    """

    base: Tensor
    shares: Tensor
    first: Tensor
    second: Tensor


def mixture_relu(outer: OuterProducts, gamma: Tensor) -> Tensor:
    """Σ_k γ_ik E[ReLU(N(u_ik, s_ik))], [S, r, h], for γ [S, r, K]; u and s are never made in full."""
    base, shares, first, second = outer
    rows = base.shape[1]
    more = -rows % first.shape[1]  # then every mask has equally many rows
    if more:
        gamma, base = (F.pad(values, (0, 0, 0, more)) for values in (gamma, base))
    return _MixtureReLU.apply(gamma, base, shares[:, : rows + more], first, second)[:, :rows]


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
    def forward(ctx: Any, gamma: Tensor, *outer: Tensor) -> Tensor:
        base, shares, first, second = outer
        trains, out, masks = any(ctx.needs_input_grad), torch.empty_like(base), first.shape[1]
        kept = gamma.new_empty(3, *gamma.shape, out.shape[2]) if trains else None
        buffers = _Buffers(3 if trains else 6)
        for block in _blocks(gamma, out.shape[2], masks):
            u, s, sigma, *rest = buffers.like(block.of(gamma), out.shape[2])
            cdf, density, relu = rest if kept is None else (block.of(own) for own in kept)
            share, share2 = block.shares(shares)
            torch.mul(share, block.pooled(first), out=u).add_(block.of(base)[..., None, :])
            torch.mul(share2, block.pooled(second), out=s)
            _evaluate(u, s, sigma, cdf, density, relu)
            # u is no longer needed.
            torch.sum(torch.mul(block.of(gamma)[..., None], relu, out=u), -2, out=block.of(out))
            if trains:
                _slope(s, sigma, density)
        if kept is not None:
            ctx.masks = masks
            ctx.save_for_backward(gamma, shares, kept)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        gamma, shares, kept = ctx.saved_tensors
        members, _, components = gamma.shape
        width = grads[0].shape[2]
        grad_gamma, grad_base = torch.empty_like(gamma), torch.empty_like(grads[0])
        grad_pooled = gamma.new_zeros(2, members, ctx.masks, components, width)
        buffers = _Buffers(3)
        for block in _blocks(gamma, width, ctx.masks):
            memory, grad = buffers.like(block.of(gamma), width), block.of(grads[0])[..., None, :]
            scaled, by_moments = memory[0], memory[1:]  # the latter by u and by s
            torch.sum(torch.mul(block.of(kept[2]), grad, out=scaled), -1, out=block.of(grad_gamma))
            torch.mul(block.of(gamma)[..., None], grad, out=scaled)
            torch.mul(block.of_both(kept[:2]), scaled, out=by_moments)
            torch.sum(by_moments[0], -2, out=block.of(grad_base))
            grad_pooled[:, block.members].add_(by_moments.mul_(block.shares(shares)).sum(2))
        return grad_gamma, grad_base, None, *grad_pooled


class _Buffers:
    """Memory for the values of one block, used again for the next: fresh memory costs more than what is done in it."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.memory: Tensor | None = None

    def like(self, gamma: Tensor, width: int) -> Tensor:
        """So many arrays of γ's shape and the width of the hidden layer."""
        shape = (self.count, *gamma.shape, width)
        if self.memory is None or self.memory.numel() < math.prod(shape):
            self.memory = gamma.new_empty(math.prod(shape))
        return self.memory[: math.prod(shape)].view(shape)


class _Block(NamedTuple):
    """Some rows of some seeds, as [members, turns, M]: a turn has one row for each of the M dropout masks."""

    members: slice
    rows: slice
    masks: int

    def of(self, values: Tensor) -> Tensor:
        """The part of [S, r, ...]: [members, turns, M, ...]."""
        return values[self.members, self.rows].unflatten(1, (-1, self.masks))

    def of_both(self, values: Tensor) -> Tensor:
        """The part of [2, S, r, ...]: [2, members, turns, M, ...]."""
        return values[:, self.members, self.rows].unflatten(2, (-1, self.masks))

    def shares(self, values: Tensor) -> Tensor:
        """The part of [2, r], the same for all members, components and units: [2, 1, turns, M, 1, 1]."""
        return values[:, self.rows].view(2, 1, -1, self.masks, 1, 1)

    def pooled(self, values: Tensor) -> Tensor:
        """The part of [S, M, K, h], the same for all turns: [members, 1, M, K, h]."""
        return values[self.members, None]


def _blocks(gamma: Tensor, width: int, masks: int) -> Iterator[_Block]:
    """All rows of all seeds; on a CPU block by block, elsewhere at once."""
    members, count, components = gamma.shape
    values = components * width  # of one row
    limit = BLOCK if gamma.device.type == "cpu" else gamma.numel() * width
    together, step = max(1, limit // (count * values)), max(1, limit // (masks * values)) * masks
    for member in range(0, members, together):
        for row in range(0, count, step):
            yield _Block(slice(member, member + together), slice(row, row + step), masks)
