"""A graph as in a file, and the one way from there to a :class:`Graph`."""

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

# By the observed entries of training nodes (true) or of all nodes; done once a mask is known (missing/scale.py).
STANDARDISE = Valid(
    lambda value: isinstance(value, bool) or value == "observed", "choose true, false or observed"
)

# The keys on attributes that any file allows.
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
    """The user's names; None if there are only numbers, from 0.

    Attributes:
        ids: of the nodes [n].
        node: of the column with the ids.
        columns: of the attributes [d].
        classes: of the classes [C].
        categories: column → the names of its values: value k means the k-th name.
    """

    ids: Sequence[str] | None = None
    node: str = "node"
    columns: Sequence[str] | None = None
    classes: Sequence[Any] | None = None
    categories: Mapping[int, Sequence[Any]] | None = None


@dataclass(frozen=True)
class RawGraph:
    """A graph as in a file, still unchecked.

    Attributes:
        features: ``[n, d]`` numbers, dense or scipy sparse; NaN = missing.
        edges: ``[2, E]`` node indices.
        labels: ``[n]`` classes, -1 = unlabelled.
        known: ``[n, d]`` bool, False = missing, whatever the features are; None if only NaN marks missing entries.
        splits: those that come with the graph, by name; called only when chosen.
        names: of nodes, attributes and classes.
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
        categorical: columns to one-hot encode, if the dataset defines them.
    """
    name, features, known = config["name"], raw.features, raw.known
    labels = check_labels(name, raw.labels)
    if labels.max() == 0:
        raise RequestError(
            f"data={name}: all labelled nodes have the same class, so there is nothing to predict."
        )
    if (encoding := encoding_of(config, raw, categorical)) is not None:
        features, known = encoding.encode(features, known)
    split = choose_split(config, labels, raw.splits, raw.names.classes)
    return build_graph(name, features, raw.edges, labels, split, known)


def encoding_of(
    config: Mapping[str, Any], raw: RawGraph, categorical: Sequence[int] | None = None
) -> Encoding | None:
    """How categories are encoded: the given ones, else those that the file names, else those of ``data.one_hot``."""
    named = raw.names.categories if categorical is None else categorical
    columns = config.get("one_hot", []) if named is None else list(named)
    mismatch = raw.known is not None and raw.known.shape != raw.features.shape  # build_graph refuses it
    return Encoding.of(config["name"], raw.features, raw.known, columns) if columns and not mismatch else None
