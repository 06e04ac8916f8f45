"""What goes into the expected ReLU of GCNmf: mean u, variance s and responsibilities γ, in three forms.

Notation as in :mod:`pagnn_bench.baselines.gcnmf_layers`: r rows, K components, h hidden units, S seeds.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from torch import Tensor

from pagnn_bench.baselines.gcnmf_pairs import Pairs
from pagnn_bench.baselines.gcnmf_relu import OuterProducts, expected_relu, mixture_relu


class Moments(Protocol):
    """u and s of every row and component, and γ [S, r, K]."""

    @property
    def gamma(self) -> Tensor: ...

    def hidden(self) -> Tensor:
        """Σ_k γ_k E[ReLU(N(u_k, s_k))], [S, r, h]."""
        ...


class FullMoments(NamedTuple):
    """u and s for every component, [S, r, K, h]."""

    gamma: Tensor
    u: Tensor
    s: Tensor

    def hidden(self) -> Tensor:
        return (self.gamma[..., None] * expected_relu(self.u, self.s)).sum(2)


class PairMoments(NamedTuple):
    """u and s only for the P ``pairs`` with γ > 0, [P, h]."""

    gamma: Tensor
    u: Tensor
    s: Tensor
    pairs: Pairs

    def hidden(self) -> Tensor:
        weights = self.gamma.flatten()[self.pairs.flat, None]
        return self.pairs.collect(weights * expected_relu(self.u, self.s))


class OuterMoments(NamedTuple):
    """u and s as outer products, of which a few columns exist."""

    gamma: Tensor
    outer: OuterProducts

    def hidden(self) -> Tensor:
        return mixture_relu(self.outer, self.gamma)
