"""Ordinary torch modules, as users write them: right ones and wrong ones."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GCNConv


class HandGCN(nn.Module):
    """Â drop(ReLU(Â drop(X) W₁ + b₁)) W₂ + b₂, written out with a dense Â."""

    def __init__(self, in_channels: int, hidden: int, out_channels: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(in_channels, hidden), nn.Linear(hidden, out_channels)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor, observed: Tensor) -> Tensor:
        assert observed.dtype == torch.bool
        assert len(observed) == len(x)
        adjacency = torch.eye(len(x)).index_put((edge_index[0], edge_index[1]), torch.tensor(1.0))
        root = adjacency.sum(1).rsqrt()
        operator = root[:, None] * adjacency * root
        hidden = torch.relu(operator @ self.dropout(x) @ self.first.weight.T + self.first.bias)
        return operator @ self.dropout(hidden) @ self.second.weight.T + self.second.bias


class Normalised(HandGCN):
    """With a batch normalisation, whose buffers are of a member and of an epoch."""

    def __init__(self, in_channels: int, hidden: int, out_channels: int, dropout: float) -> None:
        super().__init__(in_channels, hidden, out_channels, dropout)
        self.norm = nn.BatchNorm1d(in_channels)

    def forward(self, x: Tensor, edge_index: Tensor, observed: Tensor) -> Tensor:
        return super().forward(self.norm(x), edge_index, observed)


class Tied(nn.Module):
    """One matrix in two places."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.there = nn.Linear(in_channels, 4, bias=False)
        self.again = nn.Linear(in_channels, 4, bias=False)
        self.again.weight = self.there.weight
        self.out = nn.Linear(4, out_channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.there(x) + self.again(x).relu())


class Hooks(nn.Module):
    """Everything that a module may have: NaN for what is missing, prepare, edge weights, a loss of its own."""

    prepared: ClassVar[list[Tensor]] = []
    scale = 0.0

    def __init__(self, in_channels: int, hidden_channels: int, num_layers: int, out_channels: int) -> None:
        super().__init__()
        assert num_layers == 2
        self.conv1, self.conv2 = GCNConv(in_channels, hidden_channels), GCNConv(hidden_channels, out_channels)

    @staticmethod
    def prepare(x: Tensor, edge_index: Tensor, observed: Tensor) -> dict[str, Tensor]:
        Hooks.prepared.append(x.clone())
        weight = torch.rand(edge_index.shape[1])  # from a generator that is the mask's own
        return {"x": torch.cat((x.nan_to_num(0), (~observed).float()), 1), "edge_weight": weight}

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        assert x.isfinite().all()
        return self.conv2(self.conv1(x, edge_index, edge_weight).relu(), edge_index, edge_weight)

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        assert (labels >= 0).sum() < len(labels) == len(logits)
        return self.scale * F.cross_entropy(logits, labels)


class HooksWithLoss(Hooks):
    """Its own loss is the cross entropy again, so the gradient is twice that of :class:`Hooks`."""

    scale = 1.0


class OtherRandomness(nn.Module):
    """Draws from everything that is global."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_channels, out_channels)

    def forward(self, x: Tensor) -> Tensor:
        import random

        import numpy as np

        noise = random.random() + np.random.random() + torch.rand(())  # noqa: NPY002
        return self.linear(x) * noise


class InPlace(HandGCN):
    def forward(self, x: Tensor, edge_index: Tensor, observed: Tensor) -> Tensor:
        x[~observed] = 1.0
        return super().forward(x, edge_index, observed)


class Pair(HandGCN):
    def forward(self, x: Tensor, edge_index: Tensor, observed: Tensor) -> tuple[Tensor, Tensor]:
        return super().forward(x, edge_index, observed), x


class Narrow(HandGCN):
    def forward(self, x: Tensor, edge_index: Tensor, observed: Tensor) -> Tensor:
        return super().forward(x, edge_index, observed)[:, 1:]


class Breaks(HandGCN):
    def forward(self, x: Tensor, edge_index: Tensor, observed: Tensor) -> Tensor:
        raise IndexError("out of ideas")


class UnknownInput(nn.Module):
    def __init__(self, in_channels: int) -> None:
        super().__init__()

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        return x


class UnknownLoss(HandGCN):
    def loss(self, positive: Tensor) -> Tensor:
        return positive.sum()


class BoundPrepare(HandGCN):
    def prepare(self, x: Tensor) -> Tensor:
        return x


class Lazy(nn.Module):
    def __init__(self, out_channels: int) -> None:
        super().__init__()
        self.linear = nn.LazyLinear(out_channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x)


class NothingToTrain(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


class NoModule:
    pass
