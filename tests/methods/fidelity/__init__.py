"""Numbers that the public code of our rivals gives on small graphs; README.md says which code and how."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from pagnn_bench.data.graph import Graph, Split
from pagnn_bench.missing import IncompleteGraph, Observed, hide

HERE = Path(__file__).parent
CPU = torch.device("cpu")


def stored(name: str) -> dict[str, np.ndarray]:
    with np.load(HERE / f"{name}.npz") as arrays:
        return dict(arrays)


def observed_of(mask: np.ndarray) -> Observed:
    """Whole rows where the mask [n, d] has no others, else single entries."""
    rows = mask.all(axis=1)
    whole = (mask == rows[:, None]).all()
    return Observed(mask.shape, rows=rows) if whole else Observed(mask.shape, cells=mask)


def incomplete(
    arrays: dict[str, np.ndarray], mask: np.ndarray, feature_norm: str = "none", adjacency: str = "adjacency"
) -> IncompleteGraph:
    """The stored graph under a mask; its parts are those stored, or all nodes each."""
    nodes = np.arange(len(mask))
    labels = arrays.get("labels", nodes % 2)
    split = Split(*(arrays[part] if "test" in arrays else nodes for part in ("train", "val", "test")))
    graph = Graph(
        "stored",
        sp.csr_array(arrays["features"].astype(np.float32)),
        sp.csr_array(arrays[adjacency].astype(np.float32)),
        labels,
        int(labels.max()) + 1,
        split,
    )
    return hide(graph, observed_of(mask), feature_norm)


class GivenDropout:
    """Stands for DropoutStreams of one seed: the masks are given, in the order in which they are asked for."""

    def __init__(self, masks: list[np.ndarray], rate: float) -> None:
        self.scale = 1 / (1 - rate)
        self.masks = [torch.from_numpy(mask.astype(bool).ravel()) for mask in masks]

    def draw(self, count: int, rate: float) -> GivenBits:
        kept = self.masks.pop(0)
        assert len(kept) == count
        return GivenBits(kept, self.scale)


class GivenBits:
    """Stands for KeepBits of one seed."""

    def __init__(self, kept: Tensor, scale: float) -> None:
        self.kept, self.scales = kept, (scale,)

    def factors(self, member: int | None = None) -> Tensor:
        factors = self.kept.float() * self.scales[0]
        return factors[None] if member is None else factors

    def masks(self, member: int, kind: torch.dtype) -> Iterator[tuple[slice, Tensor]]:
        yield slice(0, len(self.kept)), -self.kept.to(kind)  # -1 has all bits set


class TensorFlowAdam:
    """Adam as TensorFlow 1 has it: ε is added to √v before the correction of its bias, in torch after it.

    torch's step is the same with ε √(1 - β₂ᵗ) for ε, in the first step a thirtieth. Gradients below some 1e-6 notice.
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float) -> None:
        self.parameters, self.lr, self.t = list(parameters), lr, 0
        self.m, self.v = ([torch.zeros_like(p) for p in self.parameters] for _ in range(2))

    def step(self) -> None:
        self.t += 1
        rate = self.lr * (1 - 0.999**self.t) ** 0.5 / (1 - 0.9**self.t)
        with torch.no_grad():
            for p, m, v in zip(self.parameters, self.m, self.v):
                m.mul_(0.9).add_(0.1 * p.grad)
                v.mul_(0.999).add_(0.001 * p.grad.square())
                p.sub_(rate * m / (v.sqrt() + 1e-8))
