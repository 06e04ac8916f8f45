"""Cost against size: one quantity grows while the others stay fixed, on the built-in synthetic graph.

Training and validation nodes are a tenth of all nodes each, so that the rows that matter grow with the graph; with the
few training nodes of the citation graphs an epoch would cost the same for any number of nodes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pagnn_bench.bench.child import growth_task, run_child
from pagnn_bench.bench.document import Document
from pagnn_bench.config.identity import Cell

SHARE = 0.1  # of the nodes for training, and for validation
CLASSES = 7
MEASURED = ("train_ms", "eval_ms", "prepare_seconds", "base_mb", "peak_mb")  # one entry per round


@dataclass(frozen=True)
class Size:
    """A problem: edges are undirected and given per node; words are the mean number of ones in a row of X."""

    nodes: int = 20_000
    edges_per_node: float = 10.0
    features: int = 1_000
    words: int = 10
    hidden: int = 16
    seeds: int = 1

    @property
    def edges(self) -> int:
        return round(self.nodes * self.edges_per_node)


def axes(base: Size) -> dict[str, list[Size]]:
    """What grows → the sizes to measure; the largest has 200,000 nodes and 2 million edges."""
    nodes = (3_000, 10_000, 30_000, 100_000, 200_000)
    return {
        "nodes": [replace(base, nodes=value) for value in nodes],
        "edges": [replace(base, edges_per_node=value) for value in (2.5, 5.0, 10.0, 20.0, 40.0)],
        "features": [replace(base, features=value) for value in (500, 1_000, 2_000, 4_000, 8_000)],
        "hidden": [replace(base, hidden=value) for value in (8, 16, 32, 64, 128)],
        "seeds": [replace(base, seeds=value) for value in (1, 2, 5, 10, 20)],
    }


AXES = axes(Size())


def sized(cell: Cell, size: Size) -> Cell:
    """A cell of the synthetic graph in another size."""
    own = max(1, round(SHARE * size.nodes / CLASSES))
    data = {
        **cell.data,
        "num_nodes": size.nodes,
        "num_classes": CLASSES,
        "avg_degree": 2 * size.edges_per_node,
        "num_features": size.features,
        "words_per_node": size.words,
        "train_per_class": own,
        "num_val": CLASSES * own,
    }
    return replace(cell, data=data, method={**cell.method, "hidden": size.hidden})


def measure_growth(
    cell: Cell,
    names: Sequence[str],
    repeats: int,
    epochs: int,
    threads: int | None,
    device: str,
    say: Callable[[str], None],
) -> Iterator[list[dict[str, Any]]]:
    """The points of all axes so far, after every round; each is measured in a separate process.

    Args:
        cell: a method on the synthetic graph.
        names: the axes.
        repeats: rounds.
        epochs: maximum number of epochs of a point in a round.
        threads, device: how to train.
        say: prints progress.

    Raises:
        ChildError: a process failed; earlier rounds have been yielded.
    """
    sizes = [(name, size) for name in names for size in AXES[name]]
    points = [_point(name, size) for name, size in sizes]
    for number in range(repeats):
        answers = []
        for name, size in sizes:
            say(f"round {number + 1} of {repeats}: {getattr(size, name):,} {name}")
            task = growth_task(sized(cell, size), size.seeds, epochs, threads=threads, device=device)
            answers.append(run_child(task))
        for point, answer in zip(points, answers):
            point["epochs"] = answer["epochs"]
            for key in MEASURED:
                # The time is of an epoch of all seeds, to show how it grows with their number.
                scale = point["seeds"] if key.endswith("_ms") else 1
                point[key].append(round(scale * answer[key], 4))
        yield points


def _point(name: str, size: Size) -> dict[str, Any]:
    facts = {key: getattr(size, key) for key in ("nodes", "edges", "features", "words", "hidden", "seeds")}
    return {"axis": name, "value": getattr(size, name), **facts, **{key: [] for key in MEASURED}}


def epoch_ms(point: Mapping[str, Any]) -> float:
    """Milliseconds of one epoch of all seeds, train step and evaluation: median over the rounds."""
    return statistics.median(a + b for a, b in zip(point["train_ms"], point["eval_ms"]))


def extra_mb(point: Mapping[str, Any]) -> float:
    """Peak memory beyond imports and data, median over the rounds."""
    return statistics.median(peak - base for peak, base in zip(point["peak_mb"], point["base_mb"]))


def slope(values: Sequence[float], costs: Sequence[float]) -> float | None:
    """Least-squares slope of log cost on log value: 1 is linear growth, 0 none; None without two distinct values."""
    x, y = ([math.log(number) for number in numbers] for numbers in (values, costs))
    middle_x, middle_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((a - middle_x) ** 2 for a in x)
    if spread == 0:
        return None
    return sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y)) / spread


def by_axis(document: Document) -> dict[str, list[dict[str, Any]]]:
    """Axis → points, smallest first."""
    axes: dict[str, list[dict[str, Any]]] = {}
    for point in document["points"]:
        axes.setdefault(point["axis"], []).append(point)
    return {name: sorted(points, key=lambda point: point["value"]) for name, points in axes.items()}
