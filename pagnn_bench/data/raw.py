"""A graph as a file has it, and the one way from there to a :class:`Graph`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pagnn_bench.config.schema import FLAG, Schema, Valid
from pagnn_bench.data.encode import one_hot
from pagnn_bench.data.graph import Graph, Split, build_graph, check_labels
from pagnn_bench.data.splits import choose_split

# What can be asked of the attributes of any file; `standardise` is done when a mask is known (missing/scale.py).
ATTRIBUTES: Schema = {
    "standardise": FLAG,
    "one_hot": Valid(
        lambda value: (
            isinstance(value, list) and all(type(column) is int and column >= 0 for column in value)
        ),
        "give a list of columns, counted from 0, such as [0,3]",
    ),
}


@dataclass(frozen=True)
class RawGraph:
    """A graph as a file has it; nothing is checked yet.

    Attributes:
        features: ``[n, d]`` numbers, dense or scipy sparse; NaN = missing.
        edges: ``[2, E]`` node indices.
        labels: ``[n]`` classes, -1 = unlabelled.
        known: ``[n, d]`` bool, False = missing whatever the features say; None = NaN alone tells.
        splits: those that come with the graph, by name; called only when chosen.
    """

    features: Any
    edges: np.ndarray
    labels: np.ndarray
    known: np.ndarray | None = None
    splits: Mapping[str, Callable[[], Split]] = field(default_factory=dict)


def finish(config: Mapping[str, Any], raw: RawGraph, categorical: Sequence[int] | None = None) -> Graph:
    """Encode, split and check.

    Args:
        config: the ``data`` group.
        raw: the graph.
        categorical: columns to one-hot encode; None for those that ``data.one_hot`` counts.
    """
    name = config["name"]
    labels = check_labels(name, raw.labels)
    columns = config.get("one_hot", []) if categorical is None else categorical
    features, known = one_hot(name, raw.features, raw.known, columns)
    return build_graph(name, features, raw.edges, labels, choose_split(config, labels, raw.splits), known)
