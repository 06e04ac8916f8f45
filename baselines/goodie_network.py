"""The network of GOODIE for stacks of seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pagnn_bench.baselines.goodie_contrast import Contrast
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.inputs import Input
from pagnn_bench.nn.network import StackedNetwork, xavier_uniform
from pagnn_bench.nn.sparse import SparseOperator


@dataclass(frozen=True)
class GoodiePart:
    """One part of the split.

    Attributes:
        features, labels: ĀF and ĀP on the rows that the last layer reads.
        operator: Ā from these rows to the nodes of the part.
    """

    features: Input
    labels: Input
    operator: SparseOperator


class GoodieNetwork(StackedNetwork):
    """See :class:`~pagnn_bench.baselines.goodie.Goodie`. There is no dropout, as in the released code.

    Args:
        parts: the inputs of every part of the split; with a contrast, ``train`` has those of all nodes.
        contrast: a further term of the loss, or None.
        weight: λ.
        sizes: (d, C, h).
        seeds: seeds of the initial weights, one per member of the stack.
        slope: of the leaky ReLU.
        gain: of the Xavier-uniform initialisation.
    """

    first_layer: ClassVar[tuple[str, ...]] = ("weight_features", "weight_labels")

    def __init__(
        self,
        parts: Mapping[str, GoodiePart],
        contrast: Contrast | None,
        weight: float,
        sizes: tuple[int, int, int],
        seeds: Sequence[int],
        slope: float,
        gain: float,
        device: torch.device,
    ) -> None:
        super().__init__()
        self.parts, self.contrast, self.weight, self.slope = dict(parts), contrast, weight, slope
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        width, classes, hidden = sizes
        for name, shape in (
            ("weight_features", (width, hidden)),
            ("weight_labels", (classes, hidden)),
            ("attention", (hidden, 1)),
            ("weight_out", (hidden, classes)),
        ):
            self.register_parameter(name, nn.Parameter(xavier_uniform(shape, generators, gain).to(device)))
        for name, size in (("bias_features", hidden), ("bias_labels", hidden), ("bias_out", classes)):
            self.register_parameter(name, nn.Parameter(torch.zeros(len(seeds), 1, size, device=device)))

    def forward(self, part: str, streams: DropoutStreams | None) -> Tensor:
        source = self.parts[part]
        return self._logits(source, self._fused(source))

    def backward(self, streams: DropoutStreams, objective: Callable[[Tensor], Tensor]) -> Tensor:
        if self.contrast is None:
            return super().backward(streams, objective)
        source = self.parts["train"]
        fused = self._fused(source)
        losses = objective(self._logits(source, fused)) + self.weight * self.contrast(fused)
        losses.sum().backward()
        return losses.detach()

    def _fused(self, source: GoodiePart) -> Tensor:
        """h [S, r, h]."""
        features = torch.relu(source.features(self.weight_features, None, 0.0) + self.bias_features)
        labels = torch.relu(source.labels(self.weight_labels, None, 0.0) + self.bias_labels)
        first, second = (F.leaky_relu(torch.bmm(h, self.attention), self.slope) for h in (features, labels))
        share = torch.sigmoid(first - second)  # a softmax over two
        return share * features + (1 - share) * labels

    def _logits(self, source: GoodiePart, fused: Tensor) -> Tensor:
        return source.operator(torch.bmm(fused, self.weight_out)) + self.bias_out
