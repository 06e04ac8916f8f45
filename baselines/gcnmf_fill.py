"""GCNmf's first layer from the observed part on: Â(1−M) and (Â⊙Â)(1−M) times the weights of every component.

Notation as in :mod:`pagnn_bench.baselines.gcnmf_layers`: r rows, d attributes, K components, h hidden units, S seeds.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from pagnn_bench.baselines.gcnmf_dropped import DroppedRows
from pagnn_bench.baselines.gcnmf_moments import FullMoments, Moments, OuterMoments, PairMoments
from pagnn_bench.baselines.gcnmf_pairs import Pairs
from pagnn_bench.baselines.gcnmf_relu import OuterProducts
from pagnn_bench.missing import Observed
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.inputs import DenseInput

# Dropout masks per seed and epoch for the part of the input that is the same in every row (see RowFill). Validation
# accuracy on Cora, type 1, rate 0.5, weight decay 0.005 (2 masks x 6 seeds, noise about +-0.4): 75.9, 76.0, 75.8 % with
# 1, 16, 64 masks and 75.8 % with one for every row, which trains two to three times slower.
POOL = 16


class Components(NamedTuple):
    """The factors of the products: W₁ [S, d, h], μ and σ² [S, K, d], and the responsibilities γ [S, r, K]."""

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
    """u_k = base + Â(1−M)(μ_k ⊙ W₁) and s_k = (Â⊙Â)(1−M)(σ²_k ⊙ W₁ ⊙ W₁), for a base [S, r, h]."""

    def __call__(
        self, base: Tensor, components: Components, streams: DropoutStreams | None, rate: float
    ) -> Moments: ...


def make_fill(operator: sp.csr_array, observed: Observed, rows: np.ndarray, device: torch.device) -> Fill:
    """The cheaper form for this mask; ``operator`` is Â [n, n]."""
    own = sp.csr_array(operator[rows])
    missing = (~(observed.dense() if observed.rows is None else observed.rows[:, None])).astype(np.float64)
    shares = [(weights @ missing).astype(np.float32) for weights in (own, own.multiply(own))]
    if observed.rows is None and device.type != "cpu":
        return WideFill(*(DenseInput(share, device) for share in shares))
    first, second = (torch.from_numpy(share).to(device) for share in shares)
    return (CellFill if observed.rows is None else RowFill)(first, second)


class RowFill:
    """Whole rows missing: all columns of Â(1−M) are the same, so both products are outer products.

    Separate dropout for every entry would undo that. Instead POOL masks over the d attributes are drawn and assigned to
    the rows in turn: every entry is dropped with the right probability and independently of the others in its row, so
    what reaches a hidden unit has the mean and variance of entry-wise dropout; but every POOL-th row has the same mask.
    With at most POOL rows it *is* entry-wise dropout.

    Args:
        share: Σ_j Â_ij over the missing neighbours j, [r, 1].
        share2: the same for Â⊙Â.
    """

    def __init__(self, share: Tensor, share2: Tensor) -> None:
        self.masks = min(POOL, len(share))
        # Zeros make the last turn whole, so that every mask has equally many rows.
        self.shares = F.pad(torch.cat((share, share2), 1).T, (0, -len(share) % self.masks))

    def __call__(
        self, base: Tensor, components: Components, streams: DropoutStreams | None, rate: float
    ) -> OuterMoments:
        weight, mu, sigma2, gamma = components
        members, count, attributes = mu.shape
        if streams is None or rate == 0:
            first, second = (torch.bmm(p, w)[:, None] for p, w in ((mu, weight), (sigma2, weight.square())))
        else:
            keep = streams.draw(self.masks * attributes, rate).factors().view(members, -1, attributes)
            mean, variance = components.moments()
            pooled = (torch.bmm(keep, mean), torch.bmm(keep.square(), variance))
            first, second = (product.unflatten(2, (count, -1)) for product in pooled)
        return OuterMoments(gamma, OuterProducts(base, self.shares, first, second))


class CellFill:
    """Single entries missing: two dense products, with entry-wise dropout.

    A row has so many observed attributes that nearly always one component has γ = 1 and the γ of all others underflows
    to 0. So of the K products of a row only one is needed, rarely two (:class:`Pairs`).

    Args:
        share: B = Â(1−M), [r, d].
        share2: V = (Â⊙Â)(1−M), [r, d].
    """

    def __init__(self, share: Tensor, share2: Tensor) -> None:
        self.rows = DroppedRows(share, share2)

    def to_bfloat16(self) -> None:
        """Keep B, V and the other factors in bfloat16; sums over blocks of rows and gradients stay float32."""
        self.rows.to_bfloat16()

    def __call__(
        self, base: Tensor, components: Components, streams: DropoutStreams | None, rate: float
    ) -> PairMoments:
        pairs, rows, bits = Pairs(components.gamma.detach() > 0), self.rows, None
        mu, sigma2 = components.mu, components.sigma2
        if streams is not None and rate > 0:
            keep = streams.draw(rows.entries, rate)
            # D is 0 or c = 1/(1−p): c goes to the small factor of the products, which leaves only the bits of D.
            mu, sigma2, bits = mu * keep.scale, sigma2 * keep.scale.square(), rows.aligned(keep)
        # W is transposed, [S, h, d], so that its last dimension is that of μ and σ².
        factors = (rows.padded(values) for values in (components.weight.mT, mu, sigma2))
        first, second = _CellProducts.apply(*factors, rows, pairs, bits)
        return PairMoments(components.gamma, pairs.spread(base) + first, second, pairs)


class WideFill:
    """Single entries missing, on a device with much memory, where waiting is expensive: products of all components.

    :class:`CellFill` computes only about a K-th of them, but has to read from the device in every epoch which ones.

    Args:
        share: B = Â(1−M), [r, d].
        share2: V = (Â⊙Â)(1−M), [r, d].
    """

    def __init__(self, share: DenseInput, share2: DenseInput) -> None:
        self.share, self.share2 = share, share2

    def __call__(
        self, base: Tensor, components: Components, streams: DropoutStreams | None, rate: float
    ) -> FullMoments:
        mean, variance = components.moments()
        if streams is None or rate == 0:
            first, second = self.share(mean, None, 0.0), self.share2(variance, None, 0.0)
        else:
            keep = streams.draw(self.share.matrix.numel(), rate)
            # D is 0 or c = 1/(1−p), so D² is c D.
            first, second = self.share.product(mean, keep), self.share2.product(variance * keep.scale, keep)
        first, second = (product.unflatten(2, (components.mu.shape[1], -1)) for product in (first, second))
        return FullMoments(components.gamma, base[:, :, None] + first, second)


class _CellProducts(torch.autograd.Function):
    """(D ⊙ B)(μ_k ⊙ W) and (D ⊙ V)(σ²_k ⊙ W ⊙ W) of the pairs that count, with a mask D of zeros and ones per seed."""

    @staticmethod
    def forward(
        ctx: Any,
        weight: Tensor,
        mu: Tensor,
        sigma2: Tensor,
        rows: DroppedRows,
        pairs: Pairs,
        bits: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(weight, mu, sigma2)
        ctx.rows, ctx.pairs, ctx.bits = rows, pairs, bits
        if bits is None:
            return (
                _shared(rows.matrices[:, 0], mu, weight, pairs),
                _shared(rows.matrices[:, 1], sigma2, weight.square(), pairs),
            )
        kind = rows.matrices.dtype
        first, second = (mu.new_empty(len(pairs), weight.shape[1], dtype=kind) for _ in range(2))
        for s, own in enumerate(weight):
            squared, components = own.square(), pairs.components[s]
            for k, group in zip(components, pairs.groups[s]):
                mean, variance = ((p[s, k] * w).to(kind).T for p, w in ((mu, own), (sigma2, squared)))
                for part, (b, v) in rows.dropped(bits[s], pairs.rows, group):
                    torch.mm(b, mean, out=first[part])
                    torch.mm(v, variance, out=second[part])
        return first.float(), second.float()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        weight, mu, sigma2 = ctx.saved_tensors
        grad_weight, grad_mu, grad_sigma2 = (torch.zeros_like(p) for p in (weight, mu, sigma2))
        mean, variance = weight.new_empty(2, *weight.shape[1:])  # gradients of μ_k ⊙ W and σ²_k ⊙ W ⊙ W
        for s, own in enumerate(weight):
            bits = None if ctx.bits is None else ctx.bits[s]
            for k, group in zip(ctx.pairs.components[s], ctx.pairs.groups[s]):
                for part, (b, v) in ctx.rows.dropped(bits, ctx.pairs.rows, group):
                    accumulate = part.start > group.start
                    _add_product(mean, grads[0][part].T, b, accumulate)
                    _add_product(variance, grads[1][part].T, v, accumulate)
                grad_weight[s].addcmul_(mean, mu[s, k])
                torch.sum(mean.mul_(own), 0, out=grad_mu[s, k])
                grad_weight[s].addcmul_(variance.mul_(own), sigma2[s, k], value=2)
                torch.sum(variance.mul_(own), 0, out=grad_sigma2[s, k])
        return grad_weight, grad_mu, grad_sigma2, None, None, None


def _add_product(total: Tensor, a: Tensor, b: Tensor, accumulate: bool) -> None:
    """Write a b, in the precision of b, to ``total`` in float32; ``accumulate`` adds it instead."""
    if b.dtype == total.dtype:
        torch.addmm(total, a, b, beta=float(accumulate), out=total)
    elif accumulate:
        total.add_(a.to(b.dtype) @ b)
    else:
        total.copy_(a.to(b.dtype) @ b)


def _shared(matrix: Tensor, factor: Tensor, weight: Tensor, pairs: Pairs) -> Tensor:
    """One matrix [r, d], the same for all seeds, times ``factor`` [S, K, d] ⊙ ``weight`` [S, h, d]: [P, h].

    A component is multiplied with the rows for which many seeds need it, for all seeds at once; the rest is multiplied
    seed by seed.
    """
    plan, (members, width, _) = pairs.shared_plan, weight.shape
    results = matrix.new_empty(plan.size, width)
    scaled, start = torch.empty_like(weight, dtype=matrix.dtype), 0
    for k, rows in plan.wide:
        stop = start + len(rows) * members
        torch.mul(factor[:, k, None], weight, out=scaled)
        own = matrix if len(rows) == len(matrix) else matrix.index_select(0, rows)
        torch.mm(own, scaled.flatten(0, 1).T, out=results[start:stop].view(len(rows), -1))
        start = stop
    for s, rows, groups in plan.single:
        selected, first = matrix.index_select(0, rows), 0
        for k, count in groups:
            own = selected[first : first + count]
            torch.mm(own, (factor[s, k] * weight[s]).to(results.dtype).T, out=results[start : start + count])
            first, start = first + count, start + count
    return results.index_select(0, plan.places).float()
