"""What the tests of GCNmf share: the method with few units, and small incomplete graphs."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from pagnn_bench.baselines.gcnmf import GCNmf
from pagnn_bench.baselines.gcnmf_relu import OuterProducts
from pagnn_bench.methods.base import Context
from pagnn_bench.missing import draw_observed, hide
from tests.conftest import random_graph

CPU = torch.device("cpu")
CONTEXT = Context(seed=2**62 + 1, device=CPU)  # seeds have 63 bits; scikit-learn takes 32
PATTERNS = ("rows", "cells", "biased")


def gcnmf(**changes):
    keys = {"hidden": 4, "dropout": 0.5, "components": 3, "per_seed": False, "reference_quirks": False}
    return GCNmf(**(keys | changes))


def incomplete(pattern="cells", rate=0.5, scale=False, **size):
    graph = random_graph(**size)
    if scale:  # attributes that are not binary
        values = graph.features.copy()
        values.data = np.random.default_rng(1).normal(size=values.nnz).astype(np.float32)
        graph = dataclasses.replace(graph, features=values)
    missing = {"pattern": pattern, "exact": False} | (
        {"low": 0.1, "high": 0.9} if pattern == "biased" else {}
    )
    return hide(graph, draw_observed(missing, rate, graph.features.shape, seed=3))


def in_full(outer: OuterProducts) -> tuple[torch.Tensor, torch.Tensor]:
    """u and s of every row, [S, r, K, h]: row i gets dropout mask i modulo M."""
    rows = outer.base.shape[1]
    masks = torch.arange(rows) % outer.first.shape[1]
    share, share2 = outer.shares[:, :rows, None, None]
    return outer.base[:, :, None] + share * outer.first[:, masks], share2 * outer.second[:, masks]
