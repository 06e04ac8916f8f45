"""Small graphs that every test file can use, and the folder of the real data."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from pagnn_bench.data.graph import Graph, Split
from pagnn_bench.missing import IncompleteGraph, Observed

# Tiny matrices: threads only cost, here and in the commands that tests start, and they wait for the tests beside them.
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell starts what runs in its background with Ctrl-C ignored; tests send it, also to commands that they start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def csr(rows: list[list[float]]) -> sp.csr_array:
    return sp.csr_array(np.array(rows, dtype=np.float32))


@pytest.fixture
def path3() -> sp.csr_array:
    """The path 0 - 1 - 2."""
    return csr([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def random_graph(seed: int = 0, nodes: int = 40, features: int = 12, classes: int = 3) -> Graph:
    """A random graph with an isolated node (the last one), an empty column (the last one) and words tied to classes."""
    rng = np.random.default_rng(seed)
    labels = np.arange(nodes) % classes
    likely = np.where(labels[:, None] == labels, 0.2, 0.04)
    upper = np.triu(rng.random((nodes, nodes)) < likely, 1)
    upper[:, -1] = False
    adjacency = (upper | upper.T).astype(np.float32)
    words = rng.random((nodes, features)) < 0.15
    words |= (np.arange(features) % classes == labels[:, None]) & (rng.random((nodes, features)) < 0.5)
    words[:, -1] = False
    third = nodes // 3
    split = Split(np.arange(third), np.arange(third, 2 * third), np.arange(2 * third, nodes))
    return Graph(
        "random", sp.csr_array(words.astype(np.float32)), sp.csr_array(adjacency), labels, classes, split
    )


@pytest.fixture
def graph() -> Graph:
    return random_graph()


def random_observed(graph: Graph, pattern: str, rate: float = 0.5, seed: int = 0) -> Observed:
    rng = np.random.default_rng(seed)
    shape = graph.features.shape
    if pattern == "rows":
        return Observed(shape, rows=rng.random(shape[0]) >= rate)
    return Observed(shape, cells=rng.random(shape) >= rate)


def renamed(graph: IncompleteGraph, order: np.ndarray) -> IncompleteGraph:
    """The same graph with node ``order[k]`` called k."""
    observed, names = graph.observed, np.argsort(order)
    rows = None if observed.rows is None else observed.rows[order]
    cells = None if observed.cells is None else observed.cells[order]
    return dataclasses.replace(
        graph,
        adjacency=sp.csr_array(graph.adjacency[order][:, order]),
        features=sp.csr_array(graph.features[order]),
        complete=None if graph.complete is None else sp.csr_array(graph.complete[order]),
        labels=graph.labels[order],
        observed=Observed(observed.shape, rows, cells),
        split=Split(*(names[getattr(graph.split, part)] for part in ("train", "val", "test"))),
    )


@pytest.fixture(scope="session")
def real_root() -> Path:
    """The folder that PAGNN_DATA names."""
    root = os.environ.get("PAGNN_DATA")
    if not root or not Path(root, "Cora", "raw").is_dir():
        pytest.skip("PAGNN_DATA names no folder with the real datasets")
    return Path(root)
