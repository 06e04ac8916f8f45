"""The contrastive losses of GOODIE: nodes, or class centroids, with the same pseudo label belong together."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

PAIRS = 1 << 20  # similarities that are in memory at a time


class Contrast(Protocol):
    """A loss on embeddings, [S, n, h] → [S]."""

    def __call__(self, hidden: Tensor) -> Tensor: ...


class PairContrast:
    """All pairs of nodes, z_i = h_i / ‖h_i‖::

        log p_ij = z_i·z_j / τ − log Σ_{k≠i} exp(z_i·z_k / τ)
        loss = −1/n Σ_i 1/|J_i| Σ_{j∈J_i} c_i c_j log p_ij,    J_i = {j ≠ i: t_j = t_i}

    The first term of log p_ij sums to one scalar product per class, with m_t = Σ_{t_i=t} c_i z_i and n_t nodes::

        Σ_t (‖m_t‖² − Σ_{t_i=t} c_i² ‖z_i‖²) / (τ n (n_t − 1))

    so only the second needs all pairs, a block of rows at a time. A node alone in its class adds nothing; in the
    released code it is 0/0.

    Args:
        labels: t, int [n].
        confidence: c, float [n].
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
        member = labels == np.arange(num_classes)[:, None]  # [C, n]
        others = member.sum(axis=1) - 1
        each = np.divide(1.0, others * len(labels), out=np.zeros(num_classes), where=others > 0)
        trust = member @ confidence
        # What log Σ exp counts at node i: c_i times the sum of c over J_i, over n |J_i|.
        counted = each[labels] * confidence * (trust[labels] - confidence)
        self.temperature = temperature
        self.member, self.each, self.squares, self.counted = (
            torch.from_numpy(array.astype(np.float32)).to(device)
            for array in (member * confidence, each, each[labels] * confidence**2, counted)
        )

    def __call__(self, hidden: Tensor) -> Tensor:
        z = F.normalize(hidden, dim=-1)
        means = self.member @ z  # [S, C, h]
        alike = (means.square().sum(dim=-1) * self.each).sum(dim=-1)
        alike = alike - (z.square().sum(dim=-1) * self.squares).sum(dim=-1)
        normaliser = torch.stack([_LogSumExp.apply(own, self.counted, self.temperature) for own in z])
        return normaliser - alike / self.temperature


class _LogSumExp(torch.autograd.Function):
    """Σ_i a_i log Σ_{k≠i} exp(z_i·z_k / τ) of z [n, h]; the gradient is worked out in the same pass over the pairs."""

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


class CentroidContrast:
    """Class centroids in the place of nodes, for large graphs: no positives, all of them keep apart.

    m_t = Σ_{t_i=t} c_i h_i, z_t = m_t / ‖m_t‖, loss = −mean over t of Σ_u log p_tu with p as in :class:`PairContrast`.
    The sum includes u = t, whose similarity is always 1 / τ, as the released code does. Classes that no node has are
    left out; there they are NaN.

    Args:
        labels, confidence, num_classes, temperature, device: see :class:`PairContrast`.
    """

    def __init__(
        self,
        labels: np.ndarray,
        confidence: np.ndarray,
        num_classes: int,
        temperature: float,
        device: torch.device,
    ) -> None:
        member = (labels == np.arange(num_classes)[:, None]) * confidence
        present = member[member.any(axis=1)]
        self.member = torch.from_numpy(present.astype(np.float32)).to(device)
        self.temperature = temperature

    def __call__(self, hidden: Tensor) -> Tensor:
        z = F.normalize(self.member @ hidden, dim=-1)
        classes = z.shape[1]
        if classes < 2:
            return hidden.new_zeros(len(hidden))
        similar = z @ z.mT / self.temperature
        itself = torch.eye(classes, dtype=torch.bool, device=z.device)
        normaliser = similar.masked_fill(itself, -torch.inf).logsumexp(dim=-1, keepdim=True)
        return -(similar - normaliser).sum(dim=-1).mean(dim=-1)
