"""What a job needs, estimated from sizes alone: seconds per epoch and peak memory, both rough."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from pagnn_bench.config.identity import Cell, canonical_json
from pagnn_bench.engine.plan import Job
from pagnn_bench.engine.prepare import load_once
from pagnn_bench.methods import build_method
from pagnn_bench.methods.imputation import ImputationMethod
from pagnn_bench.nn.inputs import DENSE_FROM, DROPPED_ENTRIES

FLOAT = 4  # bytes
PROCESS = 550 << 20  # Python, torch and their dependencies, although workers share part of it
ENTRY_SECONDS = 3e-9  # per entry of the training input: forward, backward and dropout, 16 units
SPARSE_FACTOR = 4  # how much more a sparse entry costs, whose indices are stored as well


class _GraphSizes(NamedTuple):
    nodes: int
    features: int
    known: int  # entries of the features that are not 0
    degree: float
    train: int


@cache
def _sizes(data: str) -> _GraphSizes:
    graph = load_once(data, "all")  # an overestimate for a component
    degree = graph.adjacency.nnz / max(1, graph.num_nodes)
    return _GraphSizes(
        graph.num_nodes, graph.num_features, graph.features.nnz, degree, len(graph.split.train)
    )


class _Workload(NamedTuple):
    """The sizes that matter; ``stored`` entries of the aggregated input, of which training needs a share."""

    sizes: _GraphSizes
    hidden: int
    stored: float
    dense: bool
    train_share: float


def _workload(cell: Cell) -> _Workload:
    sizes = _sizes(canonical_json(cell.data))
    entries = sizes.nodes * sizes.features
    components = cell.method.get("components", 1)  # of GCNmf's mixture
    filled = components > 1 or isinstance(build_method(cell.method), ImputationMethod)
    stored = entries if filled else min(entries, sizes.known * (1 - cell.rate) * (1 + sizes.degree))
    train_share = min(1.0, sizes.train * (1 + sizes.degree) / max(1, sizes.nodes))
    hidden = cell.method.get("hidden", 16) * components
    return _Workload(sizes, hidden, stored, stored > DENSE_FROM * entries, train_share)


def entry_seconds(cell: Cell) -> float:
    """Processor time of an epoch of one trial, beyond that on the smallest graph."""
    work = _workload(cell)
    factor = 1 if work.dense else SPARSE_FACTOR
    return ENTRY_SECONDS * factor * work.stored * work.train_share * max(1.0, work.hidden / 16)


def peak_bytes(job: Job) -> float:
    """Peak memory of a process that trains a job.

    Rows of training nodes and their neighbours are copied with dropout for every member of the stack, within the limits
    of the input layer; everything else exists once, or is as wide as the hidden layer. Measured peaks of 20 seeds are
    55 to 95 % of this (GCNmf on AmaComp 2.8 GB, PaGNN-N there 1.2, on Cora 0.6).
    """
    work, stack = _workload(job[0].cell), sum(len(batch.seeds) for batch in job)
    if work.dense:
        entries = work.sizes.nodes * work.sizes.features
        matrices = entries * 8.0 * FLOAT  # prepared in double precision; the rows of three parts
        copies = min(stack * entries * work.train_share, max(entries * work.train_share, DROPPED_ENTRIES))
        dropped = copies * FLOAT
    else:
        matrices = work.stored * 16 * FLOAT  # values and their places
        dropped = stack * work.stored * work.train_share * 6 * FLOAT  # values, factors and places, both ways
    activations = stack * work.sizes.nodes * work.hidden * 6 * FLOAT
    weights = stack * work.sizes.features * work.hidden * 6 * FLOAT  # gradients, moments, the best so far
    return PROCESS + matrices + dropped + activations + weights
