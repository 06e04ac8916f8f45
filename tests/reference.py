"""Independent plain implementations that the fast engine is compared with: one seed, dense, torch_geometric layers."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.nn import GCNConv
from torch_geometric.utils import add_self_loops

from pagnn_bench.missing import IncompleteGraph


class PlainPaGNN(torch.nn.Module):
    """Two layers as a user would write them: a dense partial aggregation, then GCNConv (N) or a mean (M)."""

    def __init__(self, graph: IncompleteGraph, norm: str, hidden: int) -> None:
        super().__init__()
        self.norm = norm
        self.edge_index = torch.from_numpy(np.array(graph.adjacency.nonzero())).long()
        self.x = torch.from_numpy(graph.features.toarray())
        self.m = torch.from_numpy(graph.observed.dense().copy()).float()
        n = len(self.x)
        loops, _ = add_self_loops(self.edge_index, num_nodes=n)
        dense = torch.zeros(n, n)
        dense[loops[0], loops[1]] = 1
        if norm == "n":
            root = dense.sum(1).rsqrt()
            dense = root[:, None] * dense * root
        self.dense = dense
        self.lin1 = torch.nn.Linear(self.x.shape[1], hidden)
        self.conv2 = GCNConv(hidden, graph.num_classes)

    def forward(self, input_factors: torch.Tensor | float = 1.0, hidden_factors: torch.Tensor | float = 1.0):
        aggregated = (self.dense @ (self.m * self.x)) / (self.dense @ self.m)
        aggregated = aggregated.nan_to_num(0.0)
        if self.norm == "n":
            aggregated = self.dense.sum(1, keepdim=True) * aggregated
        hidden = F.relu(self.lin1(aggregated * input_factors)) * hidden_factors
        if self.norm == "n":
            return self.conv2(hidden, self.edge_index)
        mean = self.dense / self.dense.sum(1, keepdim=True)
        return mean @ self.conv2.lin(hidden) + self.conv2.bias
