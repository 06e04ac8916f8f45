"""The plain networks: torch_geometric's layers on dense features, as a user would write them."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from pagnn_bench.bench.speed import CSR
from pagnn_bench.missing import IncompleteGraph
from pagnn_bench.nn.propagate import aggregation, mean_operator, partial_correction
from pagnn_bench.nn.sparse import csr_tensor

# torch_geometric builds its cached adjacency without saying whether torch should check it, and torch warns about that.
warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")


def plain_adjacency(matrix: sp.csr_array, form: str, device: torch.device) -> tuple[Tensor, Tensor | None]:
    """A matrix [n, n] as torch_geometric accepts it: (edge_index [2, E], weights [E]), or (CSR tensor, None).

    torch_geometric recommends the CSR form for speed: it never materialises the messages of edges.
    """
    matrix = sp.csr_array(matrix, copy=True)
    matrix.sum_duplicates()  # also sorts the indices, which torch requires
    if form == CSR:
        indptr, indices = (
            torch.from_numpy(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices)
        )
        values = torch.from_numpy(matrix.data.astype(np.float32))
        tensor = torch.sparse_csr_tensor(indptr, indices, values, size=matrix.shape, check_invariants=True)
        return tensor.to(device), None
    entries = matrix.tocoo()
    target, source = entries.coords
    weights = torch.from_numpy(entries.data.astype(np.float32))
    return torch.from_numpy(np.stack((source, target)).astype(np.int64)).to(device), weights.to(device)


class PlainGCN(nn.Module):
    """logits = Â drop(ReLU(Â drop(X) W₁ + b₁)) W₂ + b₂ on dense features: what follows an imputation.

    Args:
        features: X, filled in, float32 [n, d].
        adjacency: A without self loops; the layers normalise it once.
        sizes: (h, C).
        rate: dropout rate of the input and of the hidden layer.
        form: ``plain`` (edge list) or ``csr``.
    """

    def __init__(
        self,
        features: Tensor,
        adjacency: sp.csr_array,
        sizes: tuple[int, int],
        rate: float,
        form: str,
    ) -> None:
        super().__init__()
        self.features, self.rate = features, rate
        self.adjacency, _ = plain_adjacency(adjacency, form, features.device)
        self.conv1 = GCNConv(features.shape[1], sizes[0], cached=True)
        self.conv2 = GCNConv(*sizes, cached=True)

    def forward(self) -> Tensor:
        hidden = F.dropout(self.features, self.rate, self.training)
        hidden = self.conv1(hidden, self.adjacency).relu()
        return self.conv2(F.dropout(hidden, self.rate, self.training), self.adjacency)


class PartialConv(nn.Module):
    """One partial aggregation of dense features: H' = ((N (M ⊙ H)) ⊙ C) W + b with C = 1 ⊘ KM, both computed once.

    Args:
        graph: A and M.
        norm: ``m``, ``n`` or ``pagcn``.
        out: the number of output features.
    """

    def __init__(self, graph: IncompleteGraph, norm: str, out: int, device: torch.device) -> None:
        super().__init__()
        self.operator = csr_tensor(aggregation(graph.adjacency, norm)[0], device)
        correction = partial_correction(graph.adjacency, graph.observed, norm)
        self.correction = torch.from_numpy(correction.astype(np.float32)).to(device)
        self.lin = nn.Linear(graph.features.shape[1], out)
        nn.init.zeros_(self.lin.bias)

    def forward(self, features: Tensor) -> Tensor:
        return self.lin((self.operator @ features) * self.correction)


class PlainPaGNN(nn.Module):
    """PaGNN on dense features with dropout before the aggregation, which is repeated in every epoch.

    logits = P drop(ReLU(PartialConv(drop(M ⊙ X)))) W₂ + b₂ with P = Ā for ``m`` and Â otherwise.

    Args:
        graph: A, M ⊙ X and M.
        norm: ``m``, ``n`` or ``pagcn``.
        hidden: h.
        rate, form: see :class:`PlainGCN`.
    """

    def __init__(
        self, graph: IncompleteGraph, norm: str, hidden: int, rate: float, form: str, device: torch.device
    ) -> None:
        super().__init__()
        self.features, self.rate = torch.from_numpy(graph.features.toarray()).to(device), rate
        self.conv1 = PartialConv(graph, norm, hidden, device)
        mean = norm == "m"
        matrix = mean_operator(graph.adjacency) if mean else graph.adjacency
        self.adjacency, weights = plain_adjacency(matrix, form, device)
        self.weights = weights if mean else None
        self.conv2 = GCNConv(hidden, graph.num_classes, cached=not mean, normalize=not mean)

    def forward(self) -> Tensor:
        hidden = self.conv1(F.dropout(self.features, self.rate, self.training)).relu()
        return self.conv2(F.dropout(hidden, self.rate, self.training), self.adjacency, self.weights)
