"""Missingness that is not random: what is hidden depends on degree, class, value, neighbours, region or split.

All mechanisms that draw at random share one formula: P(missing) = σ(b + s u), where u is a standardised score, s the
strength, and b the number that makes the mean probability equal to the rate. Scores are taken from the complete graph,
which only the experimenter sees, never a method.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from pagnn_bench.config.errors import refuse
from pagnn_bench.config.identity import canonical_json, seed_for
from pagnn_bench.config.schema import SHARE, Valid, check_group, number, one_of, or_null, whole
from pagnn_bench.data.graph import Graph
from pagnn_bench.missing.mask import Observed

Score = Callable[[Graph], np.ndarray]


def degree_score(graph: Graph) -> np.ndarray:
    """u_i = -z(log(1 + degree_i)), [n]: nodes with few links are hidden, such as newcomers."""
    return -_standardised(np.log1p(np.diff(graph.adjacency.indptr)))


def class_score(graph: Graph) -> np.ndarray:
    """u_i = z(rank of the class of i), [n], in an order of the classes that is drawn once for a dataset.

    The order is the same for all masks, rates and methods. Unlabelled nodes have the mean score, 0.
    """
    order = np.random.default_rng(seed_for("classes", data=graph.name)).permutation(graph.num_classes)
    labelled = graph.labels >= 0
    return _standardised(order[graph.labels].astype(np.float64), labelled)


def own_score(graph: Graph) -> np.ndarray:
    """u_ij = z_j(x_ij), [n, d]: large values are hidden."""
    return _standardised(graph.features.toarray().astype(np.float64), graph.known)


def neighbour_score(graph: Graph) -> np.ndarray:
    """u_ij = z_j(mean of x_kj over the neighbours k of i), [n, d]; 0 where no neighbour has the attribute."""
    known = np.ones(graph.features.shape) if graph.known is None else graph.known.astype(np.float64)
    count = graph.adjacency @ known
    total = (graph.adjacency @ graph.features.astype(np.float64)).toarray()
    return _standardised(total / count.clip(1), count > 0)


# By pattern: whole nodes or single entries are hidden.
SCORES: dict[str, dict[str, Score]] = {
    "rows": {"degree": degree_score, "class": class_score},
    "cells": {"self": own_score, "neighbour": neighbour_score},
}
UNIFORM = "uniform"  # a side of a shift that is hidden at random


def _standardised(values: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
    """Mean 0 and deviation 1 in every column of [n] or [n, d] over the entries that count; 0 elsewhere."""
    counts = np.ones(values.shape, dtype=bool) if counts is None else counts
    number = counts.sum(axis=0).clip(1)
    mean = np.where(counts, values, 0).sum(axis=0) / number
    centred = np.where(counts, values - mean, 0)
    spread = np.sqrt((centred**2).sum(axis=0) / number)
    varies = spread > 1e-7 * np.abs(mean)  # the spread of a constant column is only the rounding of its mean
    return np.divide(centred, spread, out=np.zeros_like(centred), where=varies)


def probabilities(score: np.ndarray, strength: float, rate: float) -> np.ndarray:
    """P = σ(b + s u), of the shape of u, with b such that the mean of P is the rate."""
    if rate == 0 or score.size == 0:
        return np.zeros_like(score)
    tilt = strength * score
    if np.ptp(tilt) == 0:
        return np.full_like(score, rate)
    # b lies between its values if all entries were like the likeliest or the unlikeliest one. The bounds are one wider,
    # so that rounding cannot push b outside where entries hardly differ.
    low, high = logit(rate) - tilt.max() - 1, logit(rate) - tilt.min() + 1
    shift = brentq(lambda b: float(expit(b + tilt).mean()) - rate, low, high, xtol=1e-12, rtol=1e-14)
    return np.asarray(expit(shift + tilt))


def draw_mechanism(graph: Graph, missing: Mapping[str, Any], rate: float, seed: int) -> Observed:
    """Draw a mask of the mechanism that ``missing.by`` names.

    Args:
        graph: complete except for what is missing by nature, with the split of the mask.
        missing: the ``missing`` group.
        rate: mean probability of being hidden, over all nodes or over the entries that are known by nature; for
            ``region`` the exact share.
        seed: seed of the mask.
    """
    by, shape = missing["by"], (graph.num_nodes, graph.num_features)
    rng = np.random.default_rng(seed)
    if by == "unlabelled":
        return Observed(shape, rows=np.isin(np.arange(shape[0]), graph.split.train))
    if by == "region":
        return Observed(shape, rows=~_regions(graph, missing["centres"], rate, rng))
    chance = _cached_probabilities(graph, canonical_json(missing), rate)
    known = None if missing["pattern"] == "rows" else graph.known
    observed = _reveal(rng.random(chance.shape) >= chance, known, rng)
    return Observed(shape, **{missing["pattern"]: observed})


@lru_cache(maxsize=1)
def _cached_probabilities(graph: Graph, missing: str, rate: float) -> np.ndarray:
    """As :func:`hiding_probabilities`, cached for the masks and methods of a cell, which follow one another."""
    return hiding_probabilities(graph, json.loads(missing), rate)


def hiding_probabilities(graph: Graph, missing: Mapping[str, Any], rate: float) -> np.ndarray:
    """P(missing), [n] for whole nodes or [n, d] for single entries; its mean is the rate (of each side of a shift).

    Single entries can be hidden only if they are known by nature: the mean is over these, and the others have 0.
    """
    everyone = np.ones(graph.num_nodes, dtype=bool)
    sides = [(missing["by"], everyone, rate)]
    if missing["by"] == "shift":
        test = np.isin(np.arange(graph.num_nodes), graph.split.test)
        test_rate = rate if missing["test_rate"] is None else missing["test_rate"]
        sides = [(missing["elsewhere"], ~test, rate), (missing["test"], test, test_rate)]
    whole_nodes = missing["pattern"] == "rows"
    chance = np.zeros(graph.num_nodes if whole_nodes else graph.features.shape)
    for by, nodes, share in sides:
        here = nodes if whole_nodes else np.broadcast_to(nodes[:, None], chance.shape)
        if not whole_nodes and graph.known is not None:
            here = here & graph.known
        score = np.zeros(chance.shape) if by == UNIFORM else SCORES[missing["pattern"]][by](graph)
        chance[here] = probabilities(score[here], missing["strength"], share)
    return chance


def _reveal(observed: np.ndarray, known: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """Reveal one random value, known by nature (None: any), in every column that would be completely hidden."""
    columns = observed.reshape(len(observed), -1)
    known = np.ones_like(columns) if known is None else known
    empty = known.any(axis=0) & ~(columns & known).any(axis=0)
    for column in np.flatnonzero(empty):
        columns[rng.choice(np.flatnonzero(known[:, column])), column] = True
    return columns.reshape(observed.shape)


def _regions(graph: Graph, centres: int, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Hidden nodes, bool [n]: balls around random centres grow hop by hop, all at once, until the rate is met.

    Of the last hop a random part is hidden, so that the share is exact. Once the balls have filled their components, a
    new centre is chosen.
    """
    total = min(round(rate * graph.num_nodes), graph.num_nodes - 1)
    order = rng.permutation(graph.num_nodes)  # of the centres, and of the nodes of the last hop
    hidden = np.zeros(graph.num_nodes, dtype=bool)
    ring = order[: min(centres, total)]
    while (left := total - int(hidden.sum())) > 0:
        if not len(ring):
            ring = order[~hidden[order]][:1]
        hidden[ring[:left]] = True
        reached = np.asarray(graph.adjacency @ hidden.astype(np.float32)) > 0
        ring = order[(reached & ~hidden)[order]]
    return hidden


_PATTERN = one_of(SCORES)
_STRENGTH = number(-50, 50)
_ROWS = Valid(lambda value: value == "rows", "choose rows: this mechanism hides whole nodes")
_BY = one_of([*(by for scores in SCORES.values() for by in scores), "region", "unlabelled", "shift"])


def check_mechanism(missing: Mapping[str, Any], rate: float) -> None:
    """Refuse a ``missing`` group with an unknown mechanism, or with keys or values that the mechanism cannot have."""
    by = _BY.check("missing.by", missing["by"])
    pattern = _PATTERN.check("missing.pattern", missing.get("pattern"))
    schema: dict[str, Valid] = {"by": _BY, "pattern": _ROWS}
    if by == "region":
        schema["centres"] = whole(1)
    elif by == "shift":
        side = one_of([UNIFORM, *SCORES[pattern]])
        schema |= {"pattern": _PATTERN, "strength": _STRENGTH, "elsewhere": side, "test": side}
        schema["test_rate"] = or_null(SHARE)
    elif by != "unlabelled":
        own = one_of(pattern for pattern, scores in SCORES.items() if by in scores)
        schema |= {"pattern": own, "strength": _STRENGTH}
    check_group("missing", missing, schema, f"by {by}")
    if by == "unlabelled" and rate != 0:
        refuse(
            "rate",
            f"{rate:g}",
            "missing.by=unlabelled hides all nodes except those that train: leave it out, or give 0",
        )
