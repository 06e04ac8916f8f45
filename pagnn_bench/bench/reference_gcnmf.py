"""GCNmf as in its formulas, with tensors of K x n x d: the reference for our form, which needs none of them."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from pagnn_bench.bench.reference_models import plain_adjacency
from pagnn_bench.bench.speed import CSR
from pagnn_bench.missing import IncompleteGraph
from pagnn_bench.nn.propagate import symmetric_operator
from pagnn_bench.nn.sparse import csr_tensor


class FullTensorGCNmf(nn.Module):
    """GCN on a Gaussian mixture with K components (see :class:`pagnn_bench.baselines.gcnmf.GCNmf`)::

        mean_k = M ⊙ X + (1−M) ⊙ μ_k,   var_k = (1−M) ⊙ σ²_k                     [K, n, d] each
        u_k = Â (mean_k ⊙ D_k) W₁ + b₁,   s_k = (Â⊙Â) (var_k ⊙ D_k²) (W₁⊙W₁)     D_k: dropout, 0 or 1/(1−p)
        γ_ik = softmax_k(log π_k − ½ Σ_{f observed} ((x_if − μ_kf)²/σ²_kf + log σ²_kf))
        logits = Â drop(Σ_k γ_ik E[ReLU(N(u_k, s_k))]) W₂ + b₂

    Products with Â are those of sparse tensors, as in the public code.

    Args:
        graph: A, M ⊙ X and M.
        mixture: initial log π [K], μ [K, d], log σ² [K, d].
        hidden: h.
        rate: dropout rate.
    """

    def __init__(
        self,
        graph: IncompleteGraph,
        mixture: tuple[np.ndarray, np.ndarray, np.ndarray],
        hidden: int,
        rate: float,
        device: torch.device,
    ) -> None:
        super().__init__()
        self.rate = rate
        self.features = torch.from_numpy(graph.features.toarray()).to(device)
        self.observed = torch.from_numpy(graph.observed.dense().copy()).to(device)
        self.mask = self.observed.float()
        operator = symmetric_operator(graph.adjacency)
        self.operator = csr_tensor(operator, device)
        self.squared = csr_tensor(sp.csr_array(operator.multiply(operator)), device)
        self.log_pi, self.mu, self.log_sigma2 = (nn.Parameter(torch.from_numpy(p.copy())) for p in mixture)
        self.lin = nn.Linear(self.features.shape[1], hidden, bias=False)
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.adjacency, _ = plain_adjacency(graph.adjacency, CSR, device)
        self.conv2 = GCNConv(hidden, graph.num_classes, cached=True)

    def forward(self) -> Tensor:
        sigma2 = self.log_sigma2.exp()
        mean = torch.where(self.observed, self.features, self.mu[:, None])
        variance = torch.where(self.observed, 0.0, sigma2[:, None])
        gamma = self._responsibilities(mean, sigma2)
        if self.training and self.rate > 0:
            keep = F.dropout(torch.ones_like(mean), self.rate)
            mean, variance = mean * keep, variance * keep.square()
        weight = self.lin.weight.T
        u = _propagate(self.operator, mean @ weight) + self.bias
        s = _propagate(self.squared, variance @ weight.square())
        hidden = (gamma[..., None] * expected_relu(u, s)).sum(0)
        return self.conv2(F.dropout(hidden, self.rate, self.training), self.adjacency)

    def _responsibilities(self, mean: Tensor, sigma2: Tensor) -> Tensor:
        """γ [K, n]; unobserved attributes do not count."""
        # mean − μ is 0 where nothing was observed; only the log-determinant needs the mask.
        distance = ((mean - self.mu[:, None]).square() / sigma2[:, None]).sum(2)
        distance = distance + self.log_sigma2 @ self.mask.T
        return torch.softmax(self.log_pi[:, None] - 0.5 * distance, dim=0)


def _propagate(operator: Tensor, values: Tensor) -> Tensor:
    """A sparse operator [n, n] applied to values [K, n, h] in one product."""
    components, nodes, width = values.shape
    folded = values.transpose(0, 1).reshape(nodes, components * width)
    return (operator @ folded).view(nodes, components, width).transpose(0, 1)


def expected_relu(u: Tensor, s: Tensor) -> Tensor:
    """E[ReLU(Z)] of Z ~ N(u, s): √s (φ(w) + w Φ(w)) with w = u/√s; the plain ReLU where s = 0."""
    sure = s <= 0
    root = torch.where(sure, 1.0, s).sqrt()  # this `where` also keeps √0 out of the backward pass
    w = u / root
    density = torch.exp(-0.5 * w.square()) / math.sqrt(2 * math.pi)
    cdf = 0.5 * (1 + torch.erf(w / math.sqrt(2)))
    return torch.where(sure, u.relu(), root * (density + w * cdf))
