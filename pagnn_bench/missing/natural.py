"""Attributes that are missing by nature: what the graph lacks is hidden, and so is what is drawn on top."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pagnn_bench.data.graph import Graph
from pagnn_bench.missing.mask import Observed
from pagnn_bench.missing.mechanisms import draw_mechanism
from pagnn_bench.missing.observed import draw_observed


def is_natural(missing: Mapping[str, Any]) -> bool:
    """Whether a ``missing`` group takes the graph as it is."""
    return bool(missing["pattern"] == "natural")


def splits_vary(missing: Mapping[str, Any]) -> bool:
    """Whether the split varies from mask to mask: where the graph decides what is hidden, nothing else can."""
    return is_natural(missing) or missing.get("by") == "unlabelled"


def observe(graph: Graph, missing: Mapping[str, Any], rate: float, seed: int) -> Observed:
    """The mask of a graph: observed is what is known by nature and not drawn to be hidden; at least one entry.

    Random masks draw every entry with probability ``rate``, missing or not, so this is also the share of the known
    entries that are hidden. A mechanism (``missing.by``) looks at the graph first.
    """
    drawn = _draw(graph, missing, rate, seed)
    if graph.known is None:
        return drawn
    natural = Observed.of(graph.known)
    if is_natural(missing) and rate == 0:
        return natural  # may be a mask of rows: combined with an empty draw it would become one of single entries
    both = natural & drawn
    if both.missing_share < 1:
        return both
    kept = np.zeros_like(graph.known)
    kept.flat[np.random.default_rng(seed).choice(np.flatnonzero(graph.known))] = True
    return Observed(both.shape, cells=kept)


def _draw(graph: Graph, missing: Mapping[str, Any], rate: float, seed: int) -> Observed:
    if "by" in missing:
        return draw_mechanism(graph, missing, rate, seed)
    return draw_observed(missing, rate, (graph.num_nodes, graph.num_features), seed)


def scored(graph: Graph, observed: Observed) -> Observed:
    """The mask of what we hid ourselves: entries missing by nature have no truth to compare with."""
    if graph.known is None:
        return observed
    return Observed(observed.shape, cells=observed.dense() | ~graph.known)
