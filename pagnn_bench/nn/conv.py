"""The partial aggregation as a layer of torch_geometric, for use in models of one's own."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.dense.linear import Linear
from torch_geometric.utils import add_remaining_self_loops, degree


class PaGNNConv(MessagePassing):
    r"""Partial graph convolution of `PaGNN <https://arxiv.org/abs/2003.10130>`_ for features with missing entries.

    Each attribute is averaged over those neighbours (and the node itself) in which it is observed::

        norm="m" (eq. 12):  H' = (Ã(M ⊙ H) ⊘ ÃM) W + b
        norm="n" (eq. 13):  H' = (ÂE ⊙ Â(M ⊙ H) ⊘ ÂM) W + b

    with Ã = A + I and Â = D̃^{-1/2} Ã D̃^{-1/2}; 0/0 is 0. With everything observed, ``n`` is
    :class:`~torch_geometric.nn.GCNConv` and ``m`` the mean over the closed neighbourhood.

    Values at unobserved places are ignored whatever they are, NaN included, and get a zero gradient.

    Args:
        in_channels: d, the number of input features.
        out_channels: the number of output features.
        norm: ``"m"`` or ``"n"``.
        bias: whether to add b.

    Shapes:
        - **x** ``[n, d]``, **edge_index** ``[2, E]`` (both directions of an undirected edge),
          **observed** ``[n, d]`` or ``[n]`` (whole rows), True where known; None means everything
        - **output** ``[n, out_channels]``

    Example::

        conv = PaGNNConv(3, 16)
        observed = ~x.isnan()
        hidden = conv(x, edge_index, observed).relu()
    """

    def __init__(self, in_channels: int, out_channels: int, norm: str = "n", bias: bool = True) -> None:
        super().__init__(aggr="add", node_dim=0)
        if norm not in ("m", "n"):
            raise ValueError(f"norm={norm!r}: choose 'm' (mean) or 'n' (symmetric normalisation)")
        self.in_channels, self.out_channels, self.norm = in_channels, out_channels, norm
        self.lin = Linear(in_channels, out_channels, bias=False, weight_initializer="glorot")
        self.bias = torch.nn.Parameter(torch.zeros(out_channels)) if bias else None

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.lin.reset_parameters()
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, edge_index: Tensor, observed: Tensor | None = None) -> Tensor:
        out = self.lin(self.aggregate_observed(x, edge_index, observed))
        return out if self.bias is None else out + self.bias

    def aggregate_observed(self, x: Tensor, edge_index: Tensor, observed: Tensor | None = None) -> Tensor:
        """The partial aggregation alone, [n, d], before the linear map."""
        nodes = x.size(0)
        mask = torch.ones_like(x, dtype=torch.bool) if observed is None else observed.bool()
        mask = mask.view(nodes, -1)  # [n, d], or [n, 1] for whole rows
        edge_index, _ = add_remaining_self_loops(edge_index, num_nodes=nodes)
        weight = self._edge_weight(edge_index, x)
        total = self.propagate(edge_index, x=torch.where(mask, x, 0), weight=weight)
        known = self.propagate(edge_index, x=mask.to(x.dtype), weight=weight)
        # The inner `where` keeps 0/0 out of the backward pass too.
        ratio = torch.where(known > 0, total / torch.where(known > 0, known, 1), 0)
        if self.norm == "m":
            return ratio
        scale = self.propagate(edge_index, x=x.new_ones(nodes, 1), weight=weight)  # d̂
        return scale * ratio

    def message(self, x_j: Tensor, weight: Tensor) -> Tensor:
        return weight.view(-1, 1) * x_j

    def _edge_weight(self, edge_index: Tensor, x: Tensor) -> Tensor:
        if self.norm == "m":
            return x.new_ones(edge_index.size(1))
        inverse_root = degree(edge_index[1], x.size(0), dtype=x.dtype).rsqrt()
        return inverse_root[edge_index[0]] * inverse_root[edge_index[1]]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, norm={self.norm!r})"
