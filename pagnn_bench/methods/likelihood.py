"""What an imputation model predicts of an attribute: the probability of a word, or the mean of a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pagnn_bench.methods.learning import UnitRange
from pagnn_bench.missing import IncompleteGraph


@dataclass(frozen=True)
class ModelScale(UnitRange):
    """Leaves words as they are, scales numbers to mean 0 and deviation 1 of their observed values; and back.

    A column contains words if its observed values are only 0 and 1. A constant number comes back as that number.

    Attributes:
        words: bool [d].
    """

    words: np.ndarray

    @classmethod
    def of(cls, graph: IncompleteGraph) -> Self:
        unit, words = UnitRange.of(graph), word_columns(graph)
        if words.all():
            return cls(unit.low, unit.span, words)
        values, observed = graph.features.toarray().astype(np.float64), graph.observed.dense()
        count = observed.sum(axis=0).clip(1)
        mean = values.sum(axis=0, where=observed) / count
        spread = np.sqrt(((values - mean) ** 2).sum(axis=0, where=observed) / count)
        spread[spread <= 1e-7 * np.abs(mean)] = 0  # constant, up to the rounding of float32
        low, span = np.where(words, unit.low, mean), np.where(words, unit.span, spread)
        return cls(low.astype(np.float32), span.astype(np.float32), words)


def word_columns(graph: IncompleteGraph) -> np.ndarray:
    """bool [d]: the columns whose observed values are only 0 and 1."""
    known = graph.features.tocoo()
    other = known.coords[1][~np.isin(known.data, (0.0, 1.0))]
    return ~np.isin(np.arange(graph.features.shape[1]), other)


class Likelihood:
    """x ~ Bernoulli(sigmoid(l)) in columns of words, x ~ N(l, 1) in columns of numbers, for an output l of a model.

    Args:
        words: bool [d]; None: all columns are words.
    """

    def __init__(self, words: np.ndarray | None = None, device: torch.device | str = "cpu") -> None:
        self.only_words = words is None or bool(words.all())
        self.words = None if words is None else torch.from_numpy(words).to(device)

    def mean(self, output: Tensor) -> Tensor:
        """E[x], [m, d] → [m, d]."""
        if self.only_words:
            return torch.sigmoid(output)
        assert self.words is not None
        return torch.where(self.words, torch.sigmoid(output), output)

    def loss(self, output: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        """-Σ w log p(x), up to a constant for numbers; all [m, d]."""
        if self.only_words:
            return F.binary_cross_entropy_with_logits(output, x, weight=weight.to(x.dtype), reduction="sum")
        return (self._each(output, x) * weight).sum()

    def surprise(self, output: Tensor, x: Tensor, judged: Tensor | tuple[Tensor, ...]) -> Tensor:
        """-Σ log p(x), up to a constant for numbers, over the ``judged`` entries of [m, d]: a mask or indices."""
        if self.only_words:
            return F.binary_cross_entropy_with_logits(output[judged], x[judged], reduction="sum")
        return self._each(output, x)[judged].sum()

    def _each(self, output: Tensor, x: Tensor) -> Tensor:
        assert self.words is not None
        entropy = F.binary_cross_entropy_with_logits(output, x, reduction="none")
        return torch.where(self.words, entropy, 0.5 * (x - output).square())
