"""The contrastive losses of GOODIE: nodes, or class centroids, with the same pseudo label belong together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

PAIRS = 1 << 20  # similarities held in memory at a time


class Contrast(ABC):
    """A loss on embeddings, [S, n, h] → [S].

    Args:
        labels: t, int [n].
        confidence: c, float [n]. Nodes with c = 0 are left out, as if the graph did not have them.
        num_classes: C.
        temperature: τ.
        device: where the embeddings are.
    """

    def __init__(
        self,
        labels: np.ndarray,
        confidence: np.ndarray,
        num_classes: int,
        temperature: float,
        device: torch.device,
    ) -> None:
        self.temperature, self.device = temperature, device
        sure = np.flatnonzero(confidence)
        self.nodes = torch.from_numpy(sure).to(device) if len(sure) < len(labels) else None
        labels, confidence = labels[sure], confidence[sure]
        member = labels == np.arange(num_classes)[:, None]  # [C, n]
        self._precompute(member, labels, confidence)

    def __call__(self, hidden: Tensor) -> Tensor:
        return self._loss(hidden if self.nodes is None else hidden[:, self.nodes])

    @abstractmethod
    def _precompute(self, member: np.ndarray, labels: np.ndarray, confidence: np.ndarray) -> None:
        """Set what does not depend on the embeddings; ``member`` is bool [C, n]."""

    @abstractmethod
    def _loss(self, hidden: Tensor) -> Tensor: ...

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array.astype(np.float32)).to(self.device)


class PairContrast(Contrast):
    """All pairs of nodes, z_i = h_i / ‖h_i‖::

        log p_ij = z_i·z_j / τ − log Σ_{k≠i} exp(z_i·z_k / τ)
        loss = −1/n Σ_i 1/|J_i| Σ_{j∈J_i} c_i c_j log p_ij,    J_i = {j ≠ i: t_j = t_i}

    The first term of log p_ij sums to one scalar product per class, with m_t = Σ_{t_i=t} c_i z_i and n_t nodes::

        Σ_t (‖m_t‖² − Σ_{t_i=t} c_i² ‖z_i‖²) / (τ n (n_t − 1))

    so only the second needs all pairs, a block of rows at a time. A node alone in its class adds nothing; in the
    released code it is 0/0.
    """

    def _precompute(self, member: np.ndarray, labels: np.ndarray, confidence: np.ndarray) -> None:
        others = member.sum(axis=1) - 1
        each = np.divide(1.0, others * len(labels), out=np.zeros(len(member)), where=others > 0)
        trust = member @ confidence
        # The weight of log Σ exp at node i: c_i times the sum of c over J_i, divided by n |J_i|.
        counted = each[labels] * confidence * (trust[labels] - confidence)
        self.member, self.each, self.squares, self.counted = map(
            self._tensor, (member * confidence, each, each[labels] * confidence**2, counted)
        )

    def _loss(self, hidden: Tensor) -> Tensor:
        z = F.normalize(hidden, dim=-1)
        means = self.member @ z  # [S, C, h]
        alike = (means.square().sum(dim=-1) * self.each).sum(dim=-1)
        alike = alike - (z.square().sum(dim=-1) * self.squares).sum(dim=-1)
        normaliser = torch.stack([_LogSumExp.apply(own, self.counted, self.temperature) for own in z])
        return normaliser - alike / self.temperature


class _LogSumExp(torch.autograd.Function):
    """Σ_i a_i log Σ_{k≠i} exp(z_i·z_k / τ) of z [n, h]; the gradient is computed in the same pass over the pairs."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, weight: Tensor, temperature: float) -> Tensor:
        scaled, total, gradient = z / temperature, z.new_zeros(()), torch.zeros_like(z)
        size = max(1, PAIRS // len(z))
        for start in range(0, len(z), size):
            part = slice(start, start + size)
            share = scaled[part] @ z.T
            share.diagonal(start).fill_(-torch.inf)  # k = i
            top = share.amax(dim=1, keepdim=True)
            share.sub_(top).exp_()
            sums = share.sum(dim=1, keepdim=True)
            total += (weight[part] * (top + sums.log()).squeeze(1)).sum()
            share.mul_(weight[part, None] / sums)  # a_i p_ik
            gradient[part] += share @ scaled
            gradient += share.T @ scaled[part]
        ctx.save_for_backward(gradient)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        [gradient] = ctx.saved_tensors
        return grads[0] * gradient, None, None


class CentroidContrast(Contrast):
    """Class centroids instead of nodes, for large graphs: there are no positives, all centroids repel each other.

    m_t = Σ_{t_i=t} c_i h_i, z_t = m_t / ‖m_t‖, loss = −mean over t of Σ_u log p_tu with p as in :class:`PairContrast`.
    As in the released code, the sum includes u = t, whose similarity is always 1 / τ. Classes without nodes are left
    out; in that code they are NaN.
    """

    def _precompute(self, member: np.ndarray, labels: np.ndarray, confidence: np.ndarray) -> None:
        weights = member * confidence
        self.member = self._tensor(weights[weights.any(axis=1)])

    def _loss(self, hidden: Tensor) -> Tensor:
        z = F.normalize(self.member @ hidden, dim=-1)
        classes = z.shape[1]
        if classes < 2:
            return hidden.new_zeros(len(hidden))
        similar = z @ z.mT / self.temperature
        itself = torch.eye(classes, dtype=torch.bool, device=z.device)
        normaliser = similar.masked_fill(itself, -torch.inf).logsumexp(dim=-1, keepdim=True)
        return -(similar - normaliser).sum(dim=-1).mean(dim=-1)
