"""The partial aggregation as a layer of torch_geometric, for use in your own models."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.dense.linear import Linear
from torch_geometric.typing import Adj
from torch_geometric.utils import add_remaining_self_loops, is_sparse, scatter, to_edge_index


class PaGNNConv(MessagePassing):
    r"""Partial graph convolution of `PaGNN <https://arxiv.org/abs/2003.10130>`_ for features with missing entries.

    Each attribute is averaged over those neighbours (and the node itself) in which it is observed::

        norm="m" (eq. 12):  H' = (Ã(M ⊙ H) ⊘ ÃM) W + b
        norm="n" (eq. 13):  H' = (ÂE ⊙ Â(M ⊙ H) ⊘ ÂM) W + b

    with Ã = A + I and Â = D̃^{-1/2} Ã D̃^{-1/2}, D̃_ii = Σ_j Ã_ij; 0/0 is 0. With everything observed, ``n`` is
    :class:`~torch_geometric.nn.GCNConv` and ``m`` the mean over the closed neighbourhood.

    Unobserved values are ignored, even NaN, and get a zero gradient.

    * **Weights.** A_ij is the weight of the edge from j to i, 1 by default. Weights must not be negative: a denominator
      could vanish. A node without a self loop gets one of weight 1; an existing loop keeps its weight, as in GCNConv.
    * **Directed edges.** Both equations hold for any A: a node averages over the nodes that point to it, and D̃ counts
      the edges that end in a node. An undirected edge must be given in both directions.
    * **Bipartite graphs** are refused: Ã = A + I needs one set of nodes.
    * ``torch.compile`` (also with ``fullgraph=True``), ``torch.export`` and ``torch.jit.trace`` accept it with an edge
      list; ``torch.jit.script`` does not.

    Args:
        in_channels: d, the number of input features.
        out_channels: the number of output features.
        norm: ``"m"`` or ``"n"``.
        bias: whether to add b.

    Shapes:
        - **x** ``[n, d]``
        - **edge_index** ``[2, E]``, a tensor or an :class:`~torch_geometric.EdgeIndex`; or the transposed adjacency
          ``[n, n]``, row i holding the edges into i, as a sparse tensor of torch (COO, CSR, CSC). A ``SparseTensor`` of
          torch_sparse should work the same way, but is untested: it has no wheel for our version of torch.
        - **observed** ``[n, d]`` or ``[n]`` (whole rows), True where known; None means everything
        - **edge_weight** ``[E]``; a sparse adjacency has its own
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

    def forward(
        self, x: Tensor, edge_index: Adj, observed: Tensor | None = None, edge_weight: Tensor | None = None
    ) -> Tensor:
        out = self.lin(self.aggregate_observed(x, edge_index, observed, edge_weight))
        return out if self.bias is None else out + self.bias

    def aggregate_observed(
        self, x: Tensor, edge_index: Adj, observed: Tensor | None = None, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The partial aggregation alone, [n, d], before the linear map."""
        edges, weight = _edges_with_loops(x, edge_index, edge_weight)
        nodes = x.size(0)
        mask = torch.ones_like(x, dtype=torch.bool) if observed is None else observed.bool()
        mask = mask.view(nodes, -1)  # [n, d], or [n, 1] for whole rows
        if self.norm == "n":
            degree = scatter(weight, edges[1], dim_size=nodes)  # D̃
            root = (degree > 0) / torch.where(degree > 0, degree, 1).sqrt()
            weight = root[edges[1]] * weight * root[edges[0]]
        total = self.propagate(edges, x=torch.where(mask, x, 0), weight=weight)
        known = self.propagate(edges, x=mask.to(x.dtype), weight=weight)
        ratio = total / torch.where(known > 0, known, 1)  # where nothing is known, the total is 0
        if self.norm == "m":
            return ratio
        return scatter(weight, edges[1], dim_size=nodes).view(-1, 1) * ratio  # d̂ of the weights of Â

    def message(self, x_j: Tensor, weight: Tensor) -> Tensor:
        return weight.view(-1, 1) * x_j

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, norm={self.norm!r})"


def _edges_with_loops(x: Tensor, adjacency: Adj, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """Ã as edges [2, E'] from row 0 to row 1, and their weights [E']."""
    if not isinstance(x, Tensor):
        raise ValueError(
            "x is a pair of features, but PaGNNConv needs one set of nodes: its equations add self loops"
        )
    nodes, shape = x.size(0), None
    if is_sparse(adjacency):
        if weight is not None:
            raise ValueError("edge_weight: a sparse adjacency has weights of its own")
        shape = (adjacency.size(0), adjacency.size(1))
        if isinstance(adjacency, Tensor) and adjacency.layout == torch.sparse_coo:
            # A copy if it is not sorted: torch_geometric would only mark the caller's own tensor as sorted.
            adjacency = adjacency.coalesce()
        index, weight = to_edge_index(adjacency)
        adjacency = index.flip(0)  # its rows are targets
    elif isinstance(adjacency, EdgeIndex):
        shape, adjacency = adjacency.sparse_size(), adjacency.as_tensor()
    if shape is not None and any(size not in (None, nodes) for size in shape):
        raise ValueError(f"the adjacency has the shape {list(shape)}, but x has {nodes} nodes")
    if weight is None:
        weight = x.new_ones(adjacency.size(1))
    elif weight.shape != adjacency.shape[1:]:
        raise ValueError(
            f"edge_weight: {adjacency.size(1)} edges need as many weights, not {list(weight.shape)}"
        )
    edges, weight = add_remaining_self_loops(adjacency, weight.to(x.dtype), 1.0, nodes)
    return edges, weight
