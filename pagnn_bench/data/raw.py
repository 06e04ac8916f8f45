"""A graph as a file has it, and the one way from there to a :class:`Graph`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.schema import Schema, Valid
from pagnn_bench.data.encode import Encoding
from pagnn_bench.data.graph import Graph, Split, build_graph, check_labels
from pagnn_bench.data.splits import choose_split

# By whose observed entries: training nodes' (true) or all nodes'. Done when a mask is known (missing/scale.py).
STANDARDISE = Valid(
    lambda value: isinstance(value, bool) or value == "observed", "choose true, false or observed"
)

# What can be asked of the attributes of any file.
ATTRIBUTES: Schema = {
    "standardise": STANDARDISE,
    "one_hot": Valid(
        lambda value: (
            isinstance(value, list) and all(type(column) is int and column >= 0 for column in value)
        ),
        "give a list of columns, counted from 0, such as [0,3]",
    ),
}


@dataclass(frozen=True)
class Names:
    """What the user calls things; None: they have no names but their numbers, from 0.

    Attributes:
        ids: of the nodes [n].
        node: of the column with the ids.
        columns: of the attributes [d].
        classes: C of them.
        categories: of the values of a categorical column, by its number: value k stands for the k-th name.
    """

    ids: Sequence[str] | None = None
    node: str = "node"
    columns: Sequence[str] | None = None
    classes: Sequence[Any] | None = None
    categories: Mapping[int, Sequence[Any]] | None = None


@dataclass(frozen=True)
class RawGraph:
    """A graph as a file has it; nothing is checked yet.

    Attributes:
        features: ``[n, d]`` numbers, dense or scipy sparse; NaN = missing.
        edges: ``[2, E]`` node indices.
        labels: ``[n]`` classes, -1 = unlabelled.
        known: ``[n, d]`` bool, False = missing whatever the features say; None = NaN alone tells.
        splits: those that come with the graph, by name; called only when chosen.
        names: what nodes, attributes and classes are called.
    """

    features: Any
    edges: np.ndarray
    labels: np.ndarray
    known: np.ndarray | None = None
    splits: Mapping[str, Callable[[], Split]] = field(default_factory=dict)
    names: Names = field(default_factory=Names)


def finish(config: Mapping[str, Any], raw: RawGraph, categorical: Sequence[int] | None = None) -> Graph:
    """Encode, split and check.

    Args:
        config: the ``data`` group.
        raw: the graph.
        categorical: columns to one-hot encode, of a dataset that knows them itself.
    """
    name, features, known = config["name"], raw.features, raw.known
    labels = check_labels(name, raw.labels)
    if labels.max() == 0:
        raise RequestError(
            f"data={name}: all labelled nodes are of one class, so there is nothing to predict."
        )
    if (encoding := encoding_of(config, raw, categorical)) is not None:
        features, known = encoding.encode(features, known)
    split = choose_split(config, labels, raw.splits, raw.names.classes)
    return build_graph(name, features, raw.edges, labels, split, known)


def encoding_of(
    config: Mapping[str, Any], raw: RawGraph, categorical: Sequence[int] | None = None
) -> Encoding | None:
    """How categories are encoded: those that are given or that the file names, or that ``data.one_hot`` counts."""
    named = raw.names.categories if categorical is None else categorical
    columns = config.get("one_hot", []) if named is None else list(named)
    odd = raw.known is not None and raw.known.shape != raw.features.shape  # build_graph says what is wrong
    return Encoding.of(config["name"], raw.features, raw.known, columns) if columns and not odd else None
