"""What the tests of learned imputations share."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from pagnn_bench.data import Graph, load_graph
from pagnn_bench.methods.base import Context
from pagnn_bench.methods.imputation import LearnedImputation
from pagnn_bench.missing import IncompleteGraph, Observed, draw_observed, hide
from tests.conftest import random_graph

CPU = torch.device("cpu")
GCN: dict[str, Any] = {"hidden": 8, "dropout": 0.5, "input_dropout": "post", "bias": True}
NOT_ARGUMENTS = ("defaults", "name", "label", "description", "_target_", "published")


def shipped(name: str, changes: dict[str, Any]) -> dict[str, Any]:
    """The arguments in conf/method/NAME.yaml, with these changes."""
    config = OmegaConf.to_container(
        OmegaConf.load(str(files("pagnn_bench.conf") / "method" / f"{name}.yaml"))
    )
    assert isinstance(config, dict)
    return GCN | {str(key): value for key, value in config.items() if key not in NOT_ARGUMENTS} | changes


def context(seed: int = 5, report=lambda text: None) -> Context:
    return Context(seed, CPU, report)


def check_seed_decides(make: Callable[[], LearnedImputation], incomplete: IncompleteGraph) -> None:
    """The seed decides what is learned, and the global generators are left alone."""
    torch.manual_seed(0)
    state = torch.get_rng_state()
    first = make().learn(incomplete, context(1))
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(1)
    np.testing.assert_array_equal(make().learn(incomplete, context(1)), first)
    assert (make().learn(incomplete, context(2)) != first).any()


PATTERNS = pytest.mark.parametrize(
    ("pattern", "rate"), [("rows", 0.5), ("rows", 0.99), ("cells", 0.5), ("cells", 0.99)]
)


def fill_words(method: LearnedImputation, pattern: str, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Fill a random graph of words, and check what holds for every method.

    Observed entries stay, the others lie in [0, 1], and a column that nobody has seen is filled with 0.

    Returns:
        (the filled features [n, d], the mask bool [n, d]).
    """
    graph = random_graph()
    observed = draw_observed({"pattern": pattern, "exact": False}, rate, graph.features.shape, seed=3)
    if pattern == "cells":
        cells = observed.dense().copy()
        cells[:, 2], cells[[0, 7]], cells[5, 5] = False, False, True
        observed = Observed(cells.shape, cells=cells)
    filled, known = method.impute(hide(graph, observed), context()), observed.dense()
    assert isinstance(filled, np.ndarray)
    np.testing.assert_array_equal(filled[known], graph.features.toarray()[known])
    assert np.isfinite(filled).all()
    assert filled[~known].min() >= 0
    assert filled[~known].max() <= 1
    if pattern == "cells":
        assert (filled[:, 2] == 0).all()
    return filled, known


def topic_graph() -> Graph:
    """The synthetic graph with few and strong topics: a third of a node's words predict the others."""
    settings = OmegaConf.load(str(files("pagnn_bench.conf") / "data" / "synthetic.yaml"))
    strong = {
        "num_nodes": 400,
        "num_classes": 3,
        "num_features": 45,
        "words_per_node": 18,
        "word_signal": 0.95,
    }
    return load_graph({**settings, **strong, "num_val": 100})
