"""GraphSAGE with mean aggregation (Hamilton, Ying and Leskovec, arXiv 1706.02216) for many attributes."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import SimpleConv


class SAGELayer(nn.Module):
    """H W + Ā (H U) + b: [n, a] → [n, b]."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.own = nn.Linear(in_channels, out_channels)
        self.neighbours = nn.Linear(in_channels, out_channels, bias=False)
        self.mean = SimpleConv(aggr="mean")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.own(x) + self.mean(self.neighbours(x), edge_index)
        return out


class SAGE(nn.Module):
    """H_l = ReLU(drop(H_{l-1}) W_l + Ā drop(H_{l-1}) U_l + b_l), the last without ReLU; Ā averages neighbours.

    The same function as :class:`torch_geometric.nn.GraphSAGE`, which averages first and then multiplies. Here it is
    Ā (H U), which moves ``hidden`` numbers along an edge instead of d: 16 instead of 1433 on Cora.

    Args:
        in_channels, hidden_channels, out_channels: d, h and C.
        num_layers: at least 1.
        dropout: on the input of all layers except the first.

    Shapes:
        - **x** ``[n, d]``, **edge_index** ``[2, E]``
        - **output** ``[n, C]``
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, num_layers: int, dropout: float
    ) -> None:
        super().__init__()
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.layers = nn.ModuleList(SAGELayer(*pair) for pair in pairwise(sizes))
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.layers[0](x, edge_index)
        for layer in self.layers[1:]:
            x = layer(F.dropout(torch.relu(x), self.dropout, self.training), edge_index)
        return x
