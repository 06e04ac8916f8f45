"""PaGNN of any depth as a model of torch, with the conventions of ``torch_geometric.nn.GCN``."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import torch
from torch import Tensor
from torch_geometric.typing import Adj

from pagnn_bench.nn.conv import PaGNNConv


class PaGNN(torch.nn.Module):
    r"""Partial graph neural network: layers of :class:`PaGNNConv`, ReLU and dropout between them.

    Only attributes can be missing: the first layer gets the mask, and for the others everything is observed::

        H₁ = φ(X, M) W₁ + b₁,   H_l = φ(drop(ReLU(H_{l-1})), 1) W_l + b_l

    with φ the partial aggregation of eq. 12 (``norm="m"``) or 13 (``"n"``). With the same weights it gives the logits
    of ``method=pagnn_m`` and ``pagnn_n``; in training, these also have dropout on the aggregated attributes φ(X, M).

    Args:
        in_channels: d, the number of attributes.
        hidden_channels: width of the hidden layers.
        num_layers: number of layers; 2 in the paper.
        out_channels: width of the last layer; ``hidden_channels`` if None.
        dropout: rate of dropout on the hidden layers.
        norm: ``"m"`` or ``"n"``, the aggregation.
        bias: whether the layers have a bias.

    Shapes:
        **x** ``[n, d]``, **edge_index**, **observed**, **edge_weight** as in :class:`PaGNNConv`; **output**
        ``[n, out_channels]``

    Example::

        model = PaGNN(dataset.num_features, 16, num_layers=2, out_channels=dataset.num_classes, dropout=0.5)
        logits = model(x, edge_index, observed=~x.isnan())
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int | None = None,
        dropout: float = 0.0,
        norm: str = "n",
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"num_layers={num_layers}: give a whole number of at least 1")
        last = hidden_channels if out_channels is None else out_channels
        sizes = (in_channels, *[hidden_channels] * (num_layers - 1), last)
        self.convs = torch.nn.ModuleList(PaGNNConv(*pair, norm=norm, bias=bias) for pair in pairwise(sizes))
        self.dropout = torch.nn.Dropout(dropout)

    def reset_parameters(self) -> None:
        for conv in self.convs:
            cast(PaGNNConv, conv).reset_parameters()

    def forward(
        self, x: Tensor, edge_index: Adj, observed: Tensor | None = None, edge_weight: Tensor | None = None
    ) -> Tensor:
        x = self.convs[0](x, edge_index, observed, edge_weight)
        for conv in self.convs[1:]:
            x = conv(self.dropout(x.relu()), edge_index, edge_weight=edge_weight)
        return x
