"""Attributes that are really missing: hidden is what the graph does not have, and what is drawn on top."""

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
    """Whether what varies from mask to mask is the split: it is all that can where the graph decides what is hidden."""
    return is_natural(missing) or missing.get("by") == "unlabelled"


def observe(graph: Graph, missing: Mapping[str, Any], rate: float, seed: int) -> Observed:
    """The mask of a graph: known by nature, and not drawn to be hidden; one entry at least.

    By chance every entry is drawn with probability ``rate``, missing or not, so this is also the share of the known
    entries that are hidden. A mechanism (``missing.by``) has a look at the graph first.
    """
    shape = (graph.num_nodes, graph.num_features)
    by_chance = "by" not in missing
    drawn = (
        draw_observed(missing, rate, shape, seed) if by_chance else draw_mechanism(graph, missing, rate, seed)
    )
    if graph.known is None:
        return drawn
    natural = Observed.of(graph.known)
    if is_natural(missing) and rate == 0:
        return natural  # by rows where it can be: a draw of nothing must not turn it into single entries
    both = natural & drawn
    if both.missing_share < 1:
        return both
    kept = np.zeros(shape, dtype=bool)
    kept.flat[np.random.default_rng(seed).choice(np.flatnonzero(graph.known))] = True
    return Observed(shape, cells=kept)


def scored(graph: Graph, observed: Observed) -> Observed:
    """A mask that hides only what we hid ourselves: entries missing by nature have no truth to compare with."""
    if graph.known is None:
        return observed
    return Observed(observed.shape, cells=observed.dense() | ~graph.known)
