"""What trained imputation models share: features in [0, 1], entries held out for early stopping, the best weights."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from torch import nn

from pagnn_bench.missing import IncompleteGraph


@dataclass(frozen=True)
class UnitRange:
    """Scales every column to [0, 1] by its smallest and largest observed value, and back.

    A column with a single observed value spans from 0 to that value, so binary columns stay as they are.
    A column without any observed value comes back as 0.

    Attributes:
        low, span: float32 [d].
    """

    low: np.ndarray
    span: np.ndarray

    @classmethod
    def of(cls, graph: IncompleteGraph) -> Self:
        values, observed = graph.features.toarray(), graph.observed.dense()
        low = values.min(axis=0, where=observed, initial=np.inf)
        high = values.max(axis=0, where=observed, initial=-np.inf)
        empty, single = low > high, low == high
        low = np.where(empty, 0, np.where(single, np.minimum(low, 0), low))
        high = np.where(empty, 0, np.where(single, np.maximum(high, 0), high))
        only_zeros = single & (low == high)
        return cls(low.astype(np.float32), np.where(only_zeros, 1, high - low).astype(np.float32))

    def scaled(self, graph: IncompleteGraph) -> np.ndarray:
        """The observed values in [0, 1], dense float32 [n, d]; 0 where missing."""
        values = graph.features.toarray() - self.low
        scaled = np.divide(values, self.span, out=np.zeros_like(values), where=self.span > 0)
        return np.where(graph.observed.dense(), scaled, np.float32(0))

    def restored(self, values: np.ndarray) -> np.ndarray:
        """Values in [0, 1], [n, d], in the units of the features."""
        return self.low + self.span * values


def hold_out(known: np.ndarray, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Split the observed entries (bool [n, d]) at random into those to learn from and those held out for scoring.

    If there are too few for both, all entries serve as both.
    """
    held = known & (rng.random(known.shape, dtype=np.float32) < share)
    learned = known & ~held
    return (learned, held) if held.any() and learned.any() else (known, known)


class BestWeights:
    """Remembers a model's weights at its lowest score, and decides when to stop."""

    def __init__(self, model: nn.Module, patience: int) -> None:
        self.model, self.patience = model, patience
        self.score, self.step = math.inf, 0
        self.weights = copy.deepcopy(model.state_dict())

    def is_over(self, score: float, step: int) -> bool:
        """Record the score after a step; True after ``patience`` steps without improvement."""
        if math.isnan(score):
            raise FloatingPointError(f"the imputation model diverged in step {step}")
        if score < self.score:
            self.score, self.step, self.weights = score, step, copy.deepcopy(self.model.state_dict())
        return step - self.step >= self.patience

    def restore(self) -> None:
        self.model.load_state_dict(self.weights)
