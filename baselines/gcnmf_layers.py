"""The first layer of GCNmf: mean, variance and responsibilities of a graph convolution of Gaussian mixtures.

Notation: n nodes, d attributes, K components, h hidden units, S seeds; the r rows at hand are the nodes next to those
whose logits are asked for. M is the mask (1 = observed) and X° = M ⊙ X. No tensor of K x n x d is ever made, because
(M ⊙ X + (1−M) ⊙ μ_k) W₁ = X° W₁ + (1−M)(μ_k ⊙ W₁), and likewise for the variance.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from pagnn_bench.missing import Observed
from pagnn_bench.nn.dropout import DropoutStreams, KeepBits
from pagnn_bench.nn.inputs import make_input, shared_product
from pagnn_bench.nn.sparse import SparseOperator

# Dropout masks per seed and epoch for the part of the input that is the same in every row (see RowFill). Validation
# accuracy on Cora, type 1, rate 0.5, weight decay 0.005 (2 masks x 6 seeds, noise about +-0.4): 75.9, 76.0, 75.8 % with
# 1, 16, 64 masks and 75.8 % with one for every row, which trains two to three times slower.
POOL = 16


class Mixture(NamedTuple):
    """Parameters of the Gaussian mixture with diagonal covariances: log π [S, K], μ [S, K, d], log σ² [S, K, d]."""

    log_pi: Tensor
    mu: Tensor
    log_sigma2: Tensor


class FirstLayer(Protocol):
    """What stands before the expected ReLU: mean u and variance s [S, r, K, h] without bias, γ [S, r, K]."""

    def __call__(
        self, weight: Tensor, mixture: Mixture, streams: DropoutStreams | None, rate: float
    ) -> tuple[Tensor, Tensor, Tensor]: ...


class Fill(Protocol):
    """The missing part of the aggregated input.

    Called with μ_k ⊙ W₁ and σ²_k ⊙ (W₁ ⊙ W₁), both [S, d, K*h], it returns Â(1−M) and (Â⊙Â)(1−M) times them, both
    [S, r, K*h].
    """

    def __call__(
        self, mean: Tensor, variance: Tensor, streams: DropoutStreams | None, rate: float
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
        self, mean: Tensor, variance: Tensor, streams: DropoutStreams | None, rate: float
    ) -> tuple[Tensor, Tensor]:
        if streams is None or rate == 0:
            return self.share * mean.sum(1, keepdim=True), self.share2 * variance.sum(1, keepdim=True)
        members, attributes, _ = mean.shape
        keep = streams.draw(self.masks * attributes, rate).factors().view(members, self.masks, attributes)
        first, second = torch.bmm(keep, mean), torch.bmm(keep.square(), variance)
        first, second = (pooled.index_select(1, self.dealt) for pooled in (first, second))
        return self.share * first, self.share2 * second


class CellFill:
    """Single entries missing: two dense products, with entry-wise dropout.

    Args:
        share: B = Â(1−M), [r, d].
        share2: V = (Â⊙Â)(1−M), [r, d].
    """

    def __init__(self, share: Tensor, share2: Tensor) -> None:
        self.share, self.share2 = share, share2

    def __call__(
        self, mean: Tensor, variance: Tensor, streams: DropoutStreams | None, rate: float
    ) -> tuple[Tensor, Tensor]:
        if streams is None or rate == 0:
            return shared_product(self.share, mean), shared_product(self.share2, variance)
        return _DroppedFill.apply(mean, variance, self, streams.draw(self.share.numel(), rate))


class _DroppedFill(torch.autograd.Function):
    """(D ⊙ B) A and (D ⊙ D ⊙ V) C with a mask D per seed; one masked copy at a time, made anew going backward.

    D is 0 or c = 1/(1−p), so D ⊙ D ⊙ V = c (D ⊙ V), and c is taken to the narrow side of the product.
    """

    @staticmethod
    def forward(
        ctx: Any, mean: Tensor, variance: Tensor, fill: CellFill, keep: KeepBits
    ) -> tuple[Tensor, Tensor]:
        ctx.fill, ctx.keep = fill, keep
        shape = (mean.shape[0], fill.share.shape[0], mean.shape[2])
        first, second = mean.new_empty(shape), mean.new_empty(shape)
        for member in range(shape[0]):
            share, share2 = _DroppedFill.masked(fill, keep, member)
            torch.mm(share, mean[member], out=first[member])
            torch.mm(share2, variance[member], out=second[member])
        return first, second.mul_(keep.scale)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        shape = (grads[0].shape[0], ctx.fill.share.shape[1], grads[0].shape[2])
        first, second = grads[0].new_empty(shape), grads[0].new_empty(shape)
        for member in range(shape[0]):
            share, share2 = _DroppedFill.masked(ctx.fill, ctx.keep, member)
            torch.mm(share.T, grads[0][member], out=first[member])
            torch.mm(share2.T, grads[1][member], out=second[member])
        return first, second.mul_(ctx.keep.scale), None, None

    @staticmethod
    def masked(fill: CellFill, keep: KeepBits, member: int) -> tuple[Tensor, Tensor]:
        factors = keep.factors(member).view_as(fill.share)
        return fill.share * factors, fill.share2 * factors


class Responsibilities:
    """γ_ik = softmax_k(log π_k − ½ Σ_{f observed in i} ((x_if − μ_kf)²/σ²_kf + log σ²_kf)), [S, r, K].

    The squares are multiplied out, so that X° ⊙ X°, X° and M meet vectors per component instead of being expanded by
    K. Double precision, because at the smallest variances (1e-6) terms of 1e6 cancel.

    Args:
        features: X° of the rows, CSR [r, d].
        observed: M of the rows, bool [r, d] or, for whole rows, [r, 1].
        log_det: False leaves the term log σ² out, as the public code in effect does: it sums the determinants of all
            components into one number, which the softmax cancels.
    """

    def __init__(
        self, features: sp.csr_array, observed: np.ndarray, log_det: bool, device: torch.device
    ) -> None:
        features = features.astype(np.float64)
        self.features = _DoubleOperator(sp.hstack([features.multiply(features), features], "csr"), device)
        self.observed = torch.from_numpy(observed.astype(np.float64)).to(device)
        self.log_det = log_det

    def __call__(self, mixture: Mixture) -> Tensor:
        mu, log_sigma2 = (p.double().transpose(1, 2) for p in mixture[1:])  # [S, d, K]
        precision = torch.exp(-log_sigma2)
        scaled = mu * precision
        constant = mu * scaled + log_sigma2 if self.log_det else mu * scaled
        if self.observed.shape[1] == 1:
            constant = constant.sum(1, keepdim=True)
        # Folded over the seeds, because a broadcast product in double precision takes three times as long.
        known = shared_product(self.observed, constant)
        distance = self.features(torch.cat((precision, -2 * scaled), dim=1)) + known
        logits = mixture.log_pi.double()[:, None] - 0.5 * distance
        return torch.softmax(logits, dim=2).to(mixture.mu.dtype)


class _DoubleOperator(SparseOperator):
    """A sparse product in double precision."""

    def __init__(self, matrix: sp.csr_array, device: torch.device) -> None:
        self.matrix, self.transpose = (
            torch.sparse_csr_tensor(
                torch.from_numpy(m.indptr.astype(np.int32)).to(device),
                torch.from_numpy(m.indices.astype(np.int32)).to(device),
                torch.from_numpy(m.data).to(device),
                size=m.shape,
                check_invariants=True,
            )
            for m in (matrix, sp.csr_array(matrix.T))
        )


class AggregatedLayer:
    """u_k = ÂX° W₁ + Â(1−M)(μ_k ⊙ W₁) and s_k = (Â⊙Â)(1−M)(σ²_k ⊙ W₁ ⊙ W₁), with dropout on the aggregated input.

    All matrices are fixed and computed once per mask. An entry of the input is a random variable: dropped, its mean is
    multiplied by D and its variance by D² (D is 0 or 1/(1−p)), by the same D for all components. The observed and
    the missing part of an entry come from different neighbours and are dropped independently; γ sees the clean input.

    Args:
        aggregated: ÂX° at the rows, CSR [r, d].
    """

    def __init__(
        self,
        aggregated: sp.csr_array,
        fill: Fill,
        responsibilities: Responsibilities,
        device: torch.device,
    ) -> None:
        self.observed = make_input(aggregated, device)
        self.fill, self.responsibilities = fill, responsibilities

    def __call__(
        self, weight: Tensor, mixture: Mixture, streams: DropoutStreams | None, rate: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        mu, sigma2 = (p.mT.contiguous()[..., None] for p in (mixture.mu, mixture.log_sigma2.exp()))
        wide = weight[:, :, None]  # [S, d, 1, h]
        observed = self.observed(weight, streams, rate)
        first, second = self.fill((mu * wide).flatten(2), (sigma2 * wide.square()).flatten(2), streams, rate)
        shape = (*observed.shape[:2], mu.shape[2], weight.shape[2])
        return observed[:, :, None] + first.view(shape), second.view(shape), self.responsibilities(mixture)


class ReferenceLayer:
    """Training as in the public code: dropout before aggregation, with a mask of its own for every component.

    mean_k = (X° + (1−M) ⊙ μ_k) ⊙ D_k and var_k = (1−M) ⊙ σ²_k ⊙ D_k: the variance is multiplied by D, not by D². γ
    is computed from mean_k as it is after dropout, without the log-determinant. One component of one seed at a time,
    each made anew for the backward pass: slow, but no tensor is larger than the neighbours' attributes [q, d].

    Args:
        operator: rows of Â on the columns that they touch, CSR [r, q].
        own: positions of the r nodes among those q.
        features: X° of the q nodes, CSR.
        missing: 1−M of the q nodes, bool [q, d].
    """

    def __init__(
        self,
        operator: sp.csr_array,
        own: np.ndarray,
        features: sp.csr_array,
        missing: np.ndarray,
        device: torch.device,
    ) -> None:
        self.operator = SparseOperator(operator, device)
        self.squared = SparseOperator(operator.multiply(operator), device)
        self.own = torch.from_numpy(own).to(device)
        self.features = torch.from_numpy(features.toarray()).to(device)
        self.missing = torch.from_numpy(missing.astype(np.float32)).to(device)

    def __call__(
        self, weight: Tensor, mixture: Mixture, streams: DropoutStreams | None, rate: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        members, components, _ = mixture.mu.shape
        sigma2 = mixture.log_sigma2.exp()
        found: list[tuple[Tensor, ...]] = []
        for k in range(components):
            keep = streams.draw(self.features.numel(), rate) if streams is not None and rate > 0 else None
            for s in range(members):
                factors = None if keep is None else partial(keep.factors, s)
                parameters = (weight[s], mixture.mu[s, k], sigma2[s, k])
                found.append(checkpoint(self._component, factors, *parameters, use_reentrant=False))
        mean, variance, distance = (
            torch.stack(parts).unflatten(0, (components, members)).movedim(0, 2) for parts in zip(*found)
        )
        gamma = torch.softmax(mixture.log_pi[:, None] - 0.5 * distance, dim=2)
        u, s2 = self.operator(mean.flatten(2)), self.squared(variance.flatten(2))
        return u.unflatten(2, mean.shape[2:]), s2.unflatten(2, mean.shape[2:]), gamma

    def _component(
        self, draw: Callable[[], Tensor] | None, weight: Tensor, mu: Tensor, sigma2: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(mean_k W₁ [q, h], var_k (W₁⊙W₁) [q, h], Mahalanobis distances of the own nodes [r]) of one seed."""
        factors = 1.0 if draw is None else draw().view_as(self.features)
        mean = (self.features + self.missing * mu) * factors
        variance = self.missing * sigma2 * factors
        distance = ((mean[self.own] - mu).square() / sigma2).sum(1)
        return mean @ weight, variance @ weight.square(), distance
