"""The missing part of GCNmf's first layer: Â(1−M) and (Â⊙Â)(1−M) times the weights of every component.

Notation as in :mod:`pagnn_bench.baselines.gcnmf_layers`: r rows, d attributes, K components, h hidden units, S seeds.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from pagnn_bench.baselines.gcnmf_dropped import DroppedRows
from pagnn_bench.baselines.gcnmf_pairs import Pairs
from pagnn_bench.missing import Observed
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.inputs import DenseInput

# Dropout masks per seed and epoch for the part of the input that is the same in every row (see RowFill). Validation
# accuracy on Cora, type 1, rate 0.5, weight decay 0.005 (2 masks x 6 seeds, noise about +-0.4): 75.9, 76.0, 75.8 % with
# 1, 16, 64 masks and 75.8 % with one for every row, which trains two to three times slower.
POOL = 16


class Components(NamedTuple):
    """What the products are made of: W₁ [S, d, h], μ and σ² [S, K, d], and the responsibilities γ [S, r, K]."""

    weight: Tensor
    mu: Tensor
    sigma2: Tensor
    gamma: Tensor

    def moments(self) -> tuple[Tensor, Tensor]:
        """μ_k ⊙ W₁ and σ²_k ⊙ W₁ ⊙ W₁ of all components side by side, [S, d, K*h]."""
        mu, sigma2 = (p.mT.contiguous()[..., None] for p in (self.mu, self.sigma2))
        wide = self.weight[:, :, None]  # [S, d, 1, h]
        return (mu * wide).flatten(2), (sigma2 * wide.square()).flatten(2)


class Fill(Protocol):
    """Â(1−M)(μ_k ⊙ W₁) and (Â⊙Â)(1−M)(σ²_k ⊙ W₁ ⊙ W₁): [S, r, K, h], or [P, h] of the pairs that count."""

    def __call__(
        self, components: Components, streams: DropoutStreams | None, rate: float
    ) -> tuple[Tensor, Tensor, Pairs | None]: ...


def make_fill(operator: sp.csr_array, observed: Observed, rows: np.ndarray, device: torch.device) -> Fill:
    """The cheaper form for this mask; ``operator`` is Â [n, n]."""
    taken = sp.csr_array(operator[rows])
    missing = (~(observed.dense() if observed.rows is None else observed.rows[:, None])).astype(np.float64)
    shares = [(weights @ missing).astype(np.float32) for weights in (taken, taken.multiply(taken))]
    if observed.rows is None and device.type != "cpu":
        return WideFill(*(DenseInput(share, device) for share in shares))
    first, second = (torch.from_numpy(share).to(device) for share in shares)
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
    ) -> tuple[Tensor, Tensor, None]:
        members, count, attributes = components.mu.shape
        mean, variance = components.moments()
        if streams is None or rate == 0:
            first, second = mean.sum(1, keepdim=True), variance.sum(1, keepdim=True)
        else:
            keep = streams.draw(self.masks * attributes, rate).factors().view(members, -1, attributes)
            first, second = torch.bmm(keep, mean), torch.bmm(keep.square(), variance)
            first, second = (pooled.index_select(1, self.dealt) for pooled in (first, second))
        shape = (count, components.weight.shape[2])
        return (self.share * first).unflatten(2, shape), (self.share2 * second).unflatten(2, shape), None


class CellFill:
    """Single entries missing: two dense products, with entry-wise dropout.

    The observed attributes of a row are so many that they nearly always leave one component with γ = 1 and all others
    with a γ that underflows to 0. So of the K products of a row one is needed, rarely two (:class:`Pairs`).

    Args:
        share: B = Â(1−M), [r, d].
        share2: V = (Â⊙Â)(1−M), [r, d].
    """

    def __init__(self, share: Tensor, share2: Tensor) -> None:
        self.rows = DroppedRows(share, share2)

    def to_bfloat16(self) -> None:
        """B, V and what they are multiplied with in bfloat16; sums over blocks of rows and gradients stay float32."""
        self.rows.to_bfloat16()

    def __call__(
        self, components: Components, streams: DropoutStreams | None, rate: float
    ) -> tuple[Tensor, Tensor, Pairs]:
        pairs, rows, bits = Pairs(components.gamma.detach() > 0), self.rows, None
        mu, sigma2 = components.mu, components.sigma2
        if streams is not None and rate > 0:
            keep = streams.draw(rows.entries, rate)
            # D is 0 or c = 1/(1−p): c goes to the narrow side of the products, and what is left of D is bits.
            mu, sigma2, bits = mu * keep.scale, sigma2 * keep.scale.square(), rows.aligned(keep)
        # W is turned, [S, h, d], so that μ and σ² meet it along the attributes.
        factors = (rows.padded(values) for values in (components.weight.mT, mu, sigma2))
        return *_CellProducts.apply(*factors, rows, pairs, bits), pairs


class WideFill:
    """Single entries missing, on a device that has room and no time to wait: the products of all components.

    :class:`CellFill` makes about a K-th of them, but reads from the device in every epoch which ones.

    Args:
        share: B = Â(1−M), [r, d].
        share2: V = (Â⊙Â)(1−M), [r, d].
    """

    def __init__(self, share: DenseInput, share2: DenseInput) -> None:
        self.share, self.share2 = share, share2

    def __call__(
        self, components: Components, streams: DropoutStreams | None, rate: float
    ) -> tuple[Tensor, Tensor, None]:
        mean, variance = components.moments()
        if streams is None or rate == 0:
            first, second = self.share(mean, None, 0.0), self.share2(variance, None, 0.0)
        else:
            keep = streams.draw(self.share.matrix.numel(), rate)
            # D is 0 or c = 1/(1−p), so D² is c D.
            first, second = self.share.product(mean, keep), self.share2.product(variance * keep.scale, keep)
        shape = (components.mu.shape[1], components.weight.shape[2])
        return first.unflatten(2, shape), second.unflatten(2, shape), None


class _CellProducts(torch.autograd.Function):
    """(D ⊙ B)(μ_k ⊙ W) and (D ⊙ V)(σ²_k ⊙ W ⊙ W) of the pairs that count, with a mask D of zeros and ones per seed."""

    @staticmethod
    def forward(
        ctx: Any,
        turned: Tensor,
        mu: Tensor,
        sigma2: Tensor,
        rows: DroppedRows,
        pairs: Pairs,
        bits: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(turned, mu, sigma2)
        ctx.rows, ctx.pairs, ctx.bits = rows, pairs, bits
        if bits is None:
            return (
                _shared(rows.matrices[:, 0], mu, turned, pairs),
                _shared(rows.matrices[:, 1], sigma2, turned.square(), pairs),
            )
        kind = rows.matrices.dtype
        first, second = (mu.new_empty(len(pairs), turned.shape[1], dtype=kind) for _ in range(2))
        for s, own in enumerate(turned):
            squared, components = own.square(), pairs.components[s]
            for k, group in zip(components, pairs.groups[s]):
                mean, variance = ((p[s, k] * w).to(kind).T for p, w in ((mu, own), (sigma2, squared)))
                for part, (b, v) in rows.dropped(bits[s], pairs.rows, group):
                    torch.mm(b, mean, out=first[part])
                    torch.mm(v, variance, out=second[part])
        return first.float(), second.float()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        turned, mu, sigma2 = ctx.saved_tensors
        to_turned, to_mu, to_sigma2 = (torch.zeros_like(p) for p in (turned, mu, sigma2))
        mean, variance = turned.new_empty(2, *turned.shape[1:])  # gradients of μ_k ⊙ W and σ²_k ⊙ W ⊙ W
        for s, own in enumerate(turned):
            bits = None if ctx.bits is None else ctx.bits[s]
            for k, group in zip(ctx.pairs.components[s], ctx.pairs.groups[s]):
                for part, (b, v) in ctx.rows.dropped(bits, ctx.pairs.rows, group):
                    more = part.start > group.start
                    _add_product(mean, grads[0][part].T, b, more)
                    _add_product(variance, grads[1][part].T, v, more)
                to_turned[s].addcmul_(mean, mu[s, k])
                torch.sum(mean.mul_(own), 0, out=to_mu[s, k])
                to_turned[s].addcmul_(variance.mul_(own), sigma2[s, k], value=2)
                torch.sum(variance.mul_(own), 0, out=to_sigma2[s, k])
        return to_turned, to_mu, to_sigma2, None, None, None


def _add_product(total: Tensor, a: Tensor, b: Tensor, more: bool) -> None:
    """total (0 unless there is ``more`` in it) plus a b, in float32; the product in the kind of b."""
    if b.dtype == total.dtype:
        torch.addmm(total, a, b, beta=float(more), out=total)
    elif more:
        total.add_(a.to(b.dtype) @ b)
    else:
        total.copy_(a.to(b.dtype) @ b)


def _shared(matrix: Tensor, factor: Tensor, turned: Tensor, pairs: Pairs) -> Tensor:
    """One matrix [r, d], the same for all seeds, times ``factor`` [S, K, d] ⊙ ``turned`` [S, h, d]: [P, h].

    A component is multiplied with the rows for which many seeds need it, for all seeds at once; what is left over is
    multiplied seed by seed.
    """
    plan, (members, width, _) = pairs.shared_plan, turned.shape
    found = matrix.new_empty(plan.size, width)
    side, start = torch.empty_like(turned, dtype=matrix.dtype), 0
    for k, rows in plan.wide:
        stop = start + len(rows) * members
        torch.mul(factor[:, k, None], turned, out=side)
        own = matrix if len(rows) == len(matrix) else matrix.index_select(0, rows)
        torch.mm(own, side.flatten(0, 1).T, out=found[start:stop].view(len(rows), -1))
        start = stop
    for s, rows, groups in plan.single:
        taken, first = matrix.index_select(0, rows), 0
        for k, count in groups:
            own = taken[first : first + count]
            torch.mm(own, (factor[s, k] * turned[s]).to(found.dtype).T, out=found[start : start + count])
            first, start = first + count, start + count
    return found.index_select(0, plan.places).float()
