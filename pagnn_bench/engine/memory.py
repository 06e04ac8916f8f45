"""How much memory a job takes at its peak, and how many jobs at a time the machine has memory for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pagnn_bench.engine.plan import Job
from pagnn_bench.engine.prepare import graph_of
from pagnn_bench.methods import build_method
from pagnn_bench.methods.imputation import ImputationMethod
from pagnn_bench.nn.inputs import DENSE_FROM, DROPPED_ENTRIES

FLOAT = 4  # bytes
PROCESS = 550 << 20  # Python, torch and what comes with them, though workers share part of it
MEMINFO = Path("/proc/meminfo")
CGROUPS = Path("/sys/fs/cgroup")
# Limit and use of a container by both versions of cgroups; inside one they are at the top.
CGROUP_FILES = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
)


def affordable_processes(jobs: Sequence[Job], wanted: int) -> int:
    """How many of these processes fit into free memory, at least one, though the largest jobs may meet."""
    free = free_bytes()
    if free is None:
        return wanted
    largest = sorted(map(peak_bytes, jobs), reverse=True)[:wanted]
    taken = 0.0
    for number, peak in enumerate(largest):
        taken += peak
        if taken > free:
            return max(1, number)
    return wanted


def peak_bytes(job: Job) -> float:
    """Rough peak of a process that trains a job: from nodes, features, stack, hidden units and the form of the input.

    Rows of training nodes and their neighbours are dropped out anew for every member of the stack, within the bounds
    of the input layer; everything else exists once, or is as wide as the hidden layer. Measured peaks of 20 seeds are
    60 to 95 % of it (GCNmf on AmaComp 2.8 GB, PaGNN-N there 1.2, on Cora 0.6).
    """
    cell, stack = job[0].cell, sum(len(batch.seeds) for batch in job)
    graph, method = graph_of(cell), build_method(cell.method)
    nodes, features = graph.num_nodes, graph.num_features
    degree = graph.adjacency.nnz / max(1, nodes)
    entries = nodes * features
    hidden = cell.method.get("hidden", 16) * cell.method.get("components", 1)  # those of GCNmf's mixture
    filled = isinstance(method, ImputationMethod) or "components" in cell.method
    known = graph.features.nnz * (1 - cell.rate)
    stored = entries if filled else min(entries, known * (1 + degree))
    dense = stored > DENSE_FROM * entries
    train_share = min(1.0, len(graph.split.train) * (1 + degree) / max(1, nodes))
    if dense:
        matrices = entries * (6 * FLOAT + 2 * FLOAT)  # prepared in double precision; the rows of three parts
        dropped = max(entries * train_share, min(stack * entries * train_share, DROPPED_ENTRIES)) * FLOAT
    else:
        matrices = stored * 2 * (6 * FLOAT + 2 * FLOAT)  # values and their places
        dropped = stack * stored * train_share * 6 * FLOAT  # values, factors and places, both ways
    activations = stack * nodes * hidden * 6 * FLOAT
    weights = stack * features * hidden * 6 * FLOAT  # with gradients, moments and the best so far
    return PROCESS + matrices + dropped + activations + weights


def free_bytes() -> float | None:
    """Memory that could be had without hindering anybody: of the machine, or of a container's share if that is less."""
    return min(_free(), default=None)


def _free() -> Iterator[float]:
    with suppress(OSError, StopIteration, ValueError):  # other systems have no such file
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
        yield 1024 * float(next(line.split()[1] for line in lines if line.startswith("MemAvailable:")))
    for limit, used, stat in CGROUP_FILES:
        with suppress(OSError, ValueError):  # not this version; or "max": no limit
            share = float((CGROUPS / limit).read_text()) - float((CGROUPS / used).read_text())
            yield share + _reclaimable((CGROUPS / stat).read_text())


def _reclaimable(stat: str) -> float:
    """File contents that the system keeps as long as nobody needs the room; they count as used."""
    facts = dict(line.split() for line in stat.splitlines())
    return float(facts.get("total_inactive_file", facts.get("inactive_file", 0)))
