"""The controls: the mask as input, and the complete features."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pagnn_bench.baselines.full import Full
from pagnn_bench.baselines.mask_concat import MaskConcat
from pagnn_bench.methods.base import Context
from pagnn_bench.missing import hide
from pagnn_bench.nn.propagate import symmetric_operator
from tests.conftest import random_observed

CONTEXT = Context(seed=0, device=torch.device("cpu"))
COMMON = {"hidden": 4, "dropout": 0.5, "input_dropout": "post", "bias": True}


@pytest.mark.parametrize("flag", ["observed", "missing"])
@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_mask_concat_propagates_words_and_mask(graph, pattern, flag):
    observed = random_observed(graph, pattern)
    signal = MaskConcat(mask_scale=0.5, flag=flag, **COMMON).signal(hide(graph, observed), CONTEXT)
    operator, mask = symmetric_operator(graph.adjacency).toarray(), observed.dense()
    words = np.where(mask, graph.features.toarray(), 0)
    marked = mask if flag == "observed" else ~mask
    expected = np.hstack((operator @ words, operator @ (0.5 * marked)))
    np.testing.assert_allclose(signal.aggregated, expected, atol=1e-6)
    assert signal.filled is None  # [n, 2d] is not a guess of the hidden entries


@pytest.mark.parametrize("feature_norm", ["none", "row"])
def test_full_is_the_gcn_on_complete_features(graph, feature_norm):
    incomplete = hide(graph, random_observed(graph, "rows", 0.9), feature_norm, oracle=True)
    signal = Full(**COMMON).signal(incomplete, CONTEXT)
    x = graph.features.toarray()
    if feature_norm == "row":
        x /= x.sum(1, keepdims=True).clip(1)
    expected = symmetric_operator(graph.adjacency).toarray() @ x
    np.testing.assert_allclose(signal.aggregated.toarray(), expected, atol=1e-6)
