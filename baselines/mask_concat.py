"""Zero filling that shows the network what is missing, after GNNmim (arXiv 2601.04855)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from pagnn_bench.methods.base import Context, Signal
from pagnn_bench.methods.imputation import ImputationMethod
from pagnn_bench.methods.values import choice, positive
from pagnn_bench.missing import IncompleteGraph

FLAGS = ("observed", "missing")


class MaskConcat(ImputationMethod):
    """X̂ = [M ⊙ X ‖ s F] [n, 2d], then the GCN: an unknown 0 and an observed 0 are told apart.

    F is M, as in the code of GNNmim, or 1 − M. A bag of words has few ones (18 of 1433 on Cora) and F may have many, so
    it drowns out the words unless s is small.

    Args:
        mask_scale: s.
        flag: the entries that F marks with 1, ``observed`` or ``missing``.
        **common: see :class:`~pagnn_bench.methods.base.TwoLayerMethod`.
    """

    def __init__(self, mask_scale: float, flag: str = "missing", **common: Any) -> None:
        super().__init__(**common)
        self.mask_scale = positive("mask_scale", mask_scale)
        self.flag = choice("flag", flag, FLAGS)

    def impute(self, graph: IncompleteGraph, context: Context) -> np.ndarray:
        marked = graph.observed.dense() == (self.flag == "observed")
        flags = np.where(marked, np.float32(self.mask_scale), np.float32(0))
        return np.hstack((graph.features.toarray(), flags))

    def signal(self, graph: IncompleteGraph, context: Context) -> Signal:
        # Nothing is estimated, so there is no imputation error to measure.
        return dataclasses.replace(self.propagated(graph, self.impute(graph, context)), filled=None)
