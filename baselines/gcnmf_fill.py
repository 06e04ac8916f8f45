"""The missing part of GCNmf's first layer: Â(1−M) and (Â⊙Â)(1−M) times the weights of every component.

Notation as in :mod:`pagnn_bench.baselines.gcnmf_layers`: r rows, d attributes, K components, h hidden units, S seeds.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from pagnn_bench.missing import Observed
from pagnn_bench.nn.dropout import DropoutStreams, KeepBits
from pagnn_bench.nn.inputs import shared_product

# Dropout masks per seed and epoch for the part of the input that is the same in every row (see RowFill). Validation
# accuracy on Cora, type 1, rate 0.5, weight decay 0.005 (2 masks x 6 seeds, noise about +-0.4): 75.9, 76.0, 75.8 % with
# 1, 16, 64 masks and 75.8 % with one for every row, which trains two to three times slower.
POOL = 16

Pair: TypeAlias = tuple[int, Tensor | None]  # a component and the rows that it is needed for, None for all


class Components(NamedTuple):
    """What the products are made of: W₁ [S, d, h], μ and σ² [S, K, d], and the responsibilities γ [S, r, K]."""

    weight: Tensor
    mu: Tensor
    sigma2: Tensor
    gamma: Tensor


class Fill(Protocol):
    """Â(1−M)(μ_k ⊙ W₁) and (Â⊙Â)(1−M)(σ²_k ⊙ W₁ ⊙ W₁), both [S, r, K, h]; it may be 0 instead where γ is 0."""

    def __call__(
        self, components: Components, streams: DropoutStreams | None, rate: float
    ) -> tuple[Tensor, Tensor]: ...


def make_fill(
    operator: sp.csr_array, observed: Observed, rows: np.ndarray, device: torch.device
) -> RowFill | CellFill:
    """The cheaper form for this mask; ``operator`` is Â [n, n]."""
    taken = sp.csr_array(operator[rows])
    missing = (~(observed.dense() if observed.rows is None else observed.rows[:, None])).astype(np.float64)
    first, second = (
        torch.from_numpy((weights @ missing).astype(np.float32)).to(device)
        for weights in (taken, taken.multiply(taken))
    )
    return (CellFill if observed.rows is None else RowFill)(first, second)


class RowFill:
    """Whole rows missing: all columns of Â(1−M) are the same, so both products are outer products.

    A mask of its own for every entry would undo that. Instead POOL masks over the d attributes are drawn and dealt
    out to the rows in turn: every entry is dropped with the right probability and independently of the others in its
    row, so mean and variance of what reaches a hidden unit are those of entry-wise dropout; only every POOL-th row has
    the same mask. With at most POOL rows it *is* entry-wise dropout.

    Args:
        share: Σ_j Â_ij over the missing neighbours j, [r, 1].
        share2: the same of Â⊙Â.
    """

    def __init__(self, share: Tensor, share2: Tensor) -> None:
        self.share, self.share2 = share, share2
        self.masks = min(POOL, len(share))
        self.dealt = torch.arange(len(share), device=share.device) % self.masks

    def __call__(
        self, components: Components, streams: DropoutStreams | None, rate: float
    ) -> tuple[Tensor, Tensor]:
        members, count, attributes = components.mu.shape
        mu, sigma2 = (p.mT.contiguous()[..., None] for p in (components.mu, components.sigma2))
        wide = components.weight[:, :, None]  # [S, d, 1, h]
        mean, variance = (mu * wide).flatten(2), (sigma2 * wide.square()).flatten(2)  # [S, d, K*h]
        if streams is None or rate == 0:
            first, second = mean.sum(1, keepdim=True), variance.sum(1, keepdim=True)
        else:
            keep = streams.draw(self.masks * attributes, rate).factors().view(members, -1, attributes)
            first, second = torch.bmm(keep, mean), torch.bmm(keep.square(), variance)
            first, second = (pooled.index_select(1, self.dealt) for pooled in (first, second))
        shape = (count, wide.shape[3])
        return (self.share * first).unflatten(2, shape), (self.share2 * second).unflatten(2, shape)


class CellFill:
    """Single entries missing: two dense products, with entry-wise dropout.

    The observed attributes of a row are so many that they nearly always leave one component with γ = 1 and all others
    with a γ that underflows to 0. So of the K products of a row one is needed, rarely two (:func:`pairs_that_count`).

    Args:
        share: B = Â(1−M), [r, d].
        share2: V = (Â⊙Â)(1−M), [r, d].
    """

    def __init__(self, share: Tensor, share2: Tensor) -> None:
        self.share, self.share2 = share, share2
        # Filled anew for one seed after the other: to allocate the masked copies costs as much as to fill them.
        self._copies: tuple[Tensor, Tensor] | None = None

    def __call__(
        self, components: Components, streams: DropoutStreams | None, rate: float
    ) -> tuple[Tensor, Tensor]:
        keep = None if streams is None or rate == 0 else streams.draw(self.share.numel(), rate)
        *factors, gamma = components
        return _CellProducts.apply(*factors, self, pairs_that_count(gamma.detach() > 0), keep)

    def masked(self, keep: KeepBits | None, member: int) -> tuple[Tensor, Tensor]:
        """D ⊙ B and D ⊙ V, [r, d], with the dropout mask D of a seed; valid until the next call."""
        if keep is None:
            return self.share, self.share2
        if self._copies is None:
            self._copies = torch.empty_like(self.share), torch.empty_like(self.share2)
        factors = keep.factors(member).view_as(self.share)
        torch.mul(self.share, factors, out=self._copies[0])
        torch.mul(self.share2, factors, out=self._copies[1])
        return self._copies


def pairs_that_count(needed: Tensor) -> list[list[Pair]]:
    """The components of each seed that are needed for any row, each with its rows.

    The component with most rows stands with all of them (None): to multiply a few too many is cheaper than a copy.

    Args:
        needed: bool [S, r, K].
    """
    members, _, components = needed.shape
    most = needed.sum(1).argmax(1)
    others = needed.mT.clone()  # [S, K, r]
    others[torch.arange(members, device=needed.device), most] = False
    # All that is read from the device, once for the whole stack.
    sizes, largest = others.sum(2).flatten().cpu().tolist(), most.cpu().tolist()
    rows = iter(others.nonzero()[:, 2].split(sizes))
    found: list[list[Pair]] = [[(k, None)] for k in largest]
    for pairs in found:
        pairs += [(k, own) for k, own in enumerate(islice(rows, components)) if len(own)]
    return found


class _CellProducts(torch.autograd.Function):
    """(D ⊙ B)(μ_k ⊙ W) and (D ⊙ D ⊙ V)(σ²_k ⊙ W ⊙ W), with a mask D per seed and for the pairs that count.

    One masked copy at a time, made anew going backward. D is 0 or c = 1/(1−p), so D ⊙ D ⊙ V = c (D ⊙ V), and c is taken
    to the narrow side of the product. No tensor of S x d x K x h is made, which would take longer than the products.
    """

    @staticmethod
    def forward(
        ctx: Any,
        weight: Tensor,
        mu: Tensor,
        sigma2: Tensor,
        fill: CellFill,
        pairs: list[list[Pair]],
        keep: KeepBits | None,
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(weight, mu, sigma2)
        ctx.fill, ctx.pairs, ctx.keep = fill, pairs, keep
        members, components, _ = mu.shape
        first, second = (
            mu.new_zeros(members, len(fill.share), components, weight.shape[2]) for _ in range(2)
        )
        if keep is None:
            # All seeds share the matrices: the products with all rows are one product for the whole stack.
            stack, most = torch.arange(members), torch.tensor([own[0][0] for own in pairs])
            first[stack, :, most] = shared_product(fill.share, mu[stack, most, :, None] * weight)
            second[stack, :, most] = shared_product(
                fill.share2, sigma2[stack, most, :, None] * weight.square()
            )
            pairs = [own[1:] for own in pairs]
        for s in range(members):
            matrices, own = fill.masked(keep, s), weight[s]
            for k, rows in pairs[s]:
                share, share2 = _taken(matrices, rows)
                place = (s, slice(None) if rows is None else rows, k)
                first[place] = share @ (mu[s, k, :, None] * own)
                second[place] = share2 @ (sigma2[s, k, :, None] * own.square())
        if keep is not None:
            second.mul_(second.new_tensor(keep.scales)[:, None, None, None])
        return first, second

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        weight, mu, sigma2 = ctx.saved_tensors
        to_weight, to_mu, to_sigma2 = (torch.zeros_like(p) for p in (weight, mu, sigma2))
        for s, own in enumerate(weight):
            matrices = ctx.fill.masked(ctx.keep, s)
            scale = 1.0 if ctx.keep is None else ctx.keep.scales[s]
            for k, rows in ctx.pairs[s]:
                share, share2 = _taken(matrices, rows)
                place = (s, slice(None) if rows is None else rows, k)
                mean = share.T @ grads[0][place]  # the gradient of μ_k ⊙ W, [d, h]
                variance = (share2.T @ grads[1][place]).mul_(scale).mul_(own)  # that of σ²_k ⊙ W ⊙ W, times W
                to_mu[s, k] = (mean * own).sum(1)
                to_sigma2[s, k] = (variance * own).sum(1)
                to_weight[s].addcmul_(mean, mu[s, k, :, None]).addcmul_(
                    variance, sigma2[s, k, :, None], value=2
                )
        return to_weight, to_mu, to_sigma2, None, None, None


def _taken(matrices: tuple[Tensor, Tensor], rows: Tensor | None) -> tuple[Tensor, Tensor]:
    """Both matrices [r, d], or some of their rows."""
    if rows is None:
        return matrices
    return matrices[0].index_select(0, rows), matrices[1].index_select(0, rows)
