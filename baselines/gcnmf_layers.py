"""The first layer of GCNmf: mean, variance and responsibilities of a graph convolution of Gaussian mixtures.

Notation: n nodes, d attributes, K components, h hidden units, S seeds; r rows, the neighbourhood of the nodes whose
logits are needed. M is the mask (1 = observed) and X° = M ⊙ X. No tensor of K x n x d is ever made, because
(M ⊙ X + (1−M) ⊙ μ_k) W₁ = X° W₁ + (1−M)(μ_k ⊙ W₁), and likewise for the variance.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from pagnn_bench.baselines.gcnmf_fill import CellFill, Components, Fill
from pagnn_bench.baselines.gcnmf_moments import FullMoments, Moments
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.inputs import DenseInput, make_input, shared_product
from pagnn_bench.nn.sparse import SparseOperator

# exp(-104) is 0 in single precision, denormal numbers included.
UNDERFLOW = 105.0


class Mixture(NamedTuple):
    """Parameters of the Gaussian mixture with diagonal covariances: log π [S, K], μ [S, K, d], log σ² [S, K, d]."""

    log_pi: Tensor
    mu: Tensor
    log_sigma2: Tensor


class FirstLayer(Protocol):
    """u_k includes the bias [S, 1, h] or [S, r, h]."""

    def __call__(
        self, weight: Tensor, bias: Tensor, mixture: Mixture, streams: DropoutStreams | None, rate: float
    ) -> Moments: ...


class Responsibilities:
    """γ_ik = softmax_k(log π_k − ½ Σ_{f observed in i} ((x_if − μ_kf)²/σ²_kf + log σ²_kf)), [S, r, K].

    The squares are multiplied out, so that X° ⊙ X°, X° and M are multiplied with vectors per component instead of being
    expanded by K. Double precision is needed because at the smallest variances (1e-6) terms of 1e6 cancel. But most
    nodes are so far from all components except one that the last digits do not matter: the product with M in single
    precision, with a bound on its error, finds the nodes whose γ are 1 and 0, and only the others need it in double
    precision.

    Args:
        features: X° of the rows, CSR [r, d].
        observed: M of the rows, bool [r, d] or, for whole rows, [r, 1].
        log_det: False leaves out the term log σ², as the public code does in effect: it sums the determinants of all
            components into one number, which cancels in the softmax.
    """

    def __init__(
        self, features: sp.csr_array, observed: np.ndarray, log_det: bool, device: torch.device
    ) -> None:
        features = features.astype(np.float64)
        self.features = _DoubleOperator(sp.hstack([features.multiply(features), features], "csr"), device)
        # Asking another device which nodes these are would take longer than the product.
        self.all_in_double = device.type != "cpu" or observed.shape[1] == 1
        kind = np.float64 if self.all_in_double else np.float32
        self.observed = torch.from_numpy(observed.astype(kind)).to(device)
        self.log_det = log_det

    def __call__(self, mixture: Mixture) -> Tensor:
        mu, log_sigma2 = (p.double().transpose(1, 2) for p in mixture[1:])  # [S, d, K]
        precision = torch.exp(-log_sigma2)
        scaled = mu * precision
        constant = mu * scaled + log_sigma2 if self.log_det else mu * scaled
        logits = mixture.log_pi.double()[:, None] - 0.5 * self.features(
            torch.cat((precision, -2 * scaled), dim=1)
        )
        if self.all_in_double:
            whole_rows = self.observed.shape[1] == 1
            known = (
                self.observed * constant.sum(1, keepdim=True)
                if whole_rows
                else shared_product(self.observed, constant)
            )
            return torch.softmax(logits - 0.5 * known, dim=2).to(mixture.mu.dtype)
        certain, doubtful = self._certain(logits.detach(), constant.detach())
        # Seeds are folded, because a broadcast product in double precision takes three times as long.
        known = shared_product(self.observed.index_select(0, doubtful).double(), constant)
        gamma = torch.softmax(logits.index_select(1, doubtful) - 0.5 * known, dim=2).to(mixture.mu.dtype)
        return gamma if len(doubtful) == certain.shape[1] else certain.index_copy(1, doubtful, gamma)

    def _certain(self, logits: Tensor, constant: Tensor) -> tuple[Tensor, Tensor]:
        """γ rounded to 0 and 1, [S, r, K], and the rows for which single precision cannot prove that.

        Args:
            logits: without what M contributes, [S, r, K].
            constant: what M is multiplied with, [S, d, K].
        """
        # What all components share cancels in the softmax.
        single = (constant - constant.mean(2, keepdim=True)).float()
        # Bound on the error of a sum of d rounded terms: half of it for a logit, all for a difference of two logits.
        rounding = (single.shape[1] + 2) * 0.5 * torch.finfo(torch.float32).eps
        error = rounding * single.abs().sum(1).amax(1)  # [S]
        rough = logits - 0.5 * shared_product(self.observed, single)
        highest = rough.amax(2, keepdim=True)
        near = rough >= highest - (UNDERFLOW + error.double()[:, None, None])
        doubtful = (near.sum(2) != 1).any(0).nonzero()[:, 0]
        return near.to(single.dtype), doubtful


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

    All matrices are fixed and computed once per mask. An entry of the input is a random variable: under dropout its
    mean is multiplied by D and its variance by D² (D is 0 or 1/(1−p)), with the same D for all components. The
    observed and the missing part of an entry come from different neighbours and are dropped independently; γ uses the
    input without dropout.

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

    def to_bfloat16(self) -> None:
        """Use bfloat16 for large dense products, except pooled masks, which are few, and γ, which needs precision."""
        if isinstance(self.observed, DenseInput):
            self.observed.to_bfloat16()
        if isinstance(self.fill, CellFill):
            self.fill.to_bfloat16()

    def __call__(
        self, weight: Tensor, bias: Tensor, mixture: Mixture, streams: DropoutStreams | None, rate: float
    ) -> Moments:
        base, gamma = self.observed(weight, streams, rate) + bias, self.responsibilities(mixture)
        components = Components(weight, mixture.mu, mixture.log_sigma2.exp(), gamma)
        return self.fill(base, components, streams, rate)


class ReferenceLayer:
    """Training as in the public code: dropout before aggregation, with a separate mask for every component.

    mean_k = (X° + (1−M) ⊙ μ_k) ⊙ D_k and var_k = (1−M) ⊙ σ²_k ⊙ D_k: the variance is multiplied by D, not by D². γ
    is computed from mean_k after dropout, without the log-determinant. One component of one seed at a time, recomputed
    for the backward pass: slow, but no tensor is larger than the neighbours' attributes [q, d].

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
        self, weight: Tensor, bias: Tensor, mixture: Mixture, streams: DropoutStreams | None, rate: float
    ) -> FullMoments:
        members, components, _ = mixture.mu.shape
        sigma2 = mixture.log_sigma2.exp()
        parts: list[tuple[Tensor, ...]] = []
        for k in range(components):
            keep = streams.draw(self.features.numel(), rate) if streams is not None and rate > 0 else None
            for s in range(members):
                factors = None if keep is None else partial(keep.factors, s)
                parameters = (weight[s], mixture.mu[s, k], sigma2[s, k])
                parts.append(checkpoint(self._component, factors, *parameters, use_reentrant=False))
        mean, variance, distance = (
            torch.stack(values).unflatten(0, (components, members)).movedim(0, 2) for values in zip(*parts)
        )
        gamma = torch.softmax(mixture.log_pi[:, None] - 0.5 * distance, dim=2)
        first, second = self.operator(mean.flatten(2)), self.squared(variance.flatten(2))
        first, second = (product.unflatten(2, mean.shape[2:]) for product in (first, second))
        return FullMoments(gamma, bias[:, :, None] + first, second)

    def _component(
        self, draw: Callable[[], Tensor] | None, weight: Tensor, mu: Tensor, sigma2: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(mean_k W₁ [q, h], var_k (W₁⊙W₁) [q, h], Mahalanobis distances of the own nodes [r]) of one seed."""
        factors = 1.0 if draw is None else draw().view_as(self.features)
        mean = (self.features + self.missing * mu) * factors
        variance = self.missing * sigma2 * factors
        distance = ((mean[self.own] - mu).square() / sigma2).sum(1)
        return mean @ weight, variance @ weight.square(), distance
