"""Mechanisms: exact rates, scores by hand, drawn masks against their probabilities, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from pagnn_bench.config.errors import RequestError
from pagnn_bench.data.graph import Graph, Split, build_graph
from pagnn_bench.missing import check_missing, observe
from pagnn_bench.missing.mechanisms import (
    SCORES,
    class_score,
    degree_score,
    hiding_probabilities,
    neighbour_score,
    own_score,
    probabilities,
)
from tests.conftest import random_graph

CHANCE = {
    "degree": {"by": "degree", "pattern": "rows", "strength": 2.0},
    "class": {"by": "class", "pattern": "rows", "strength": 2.0},
    "self": {"by": "self", "pattern": "cells", "strength": 2.0},
    "neighbour": {"by": "neighbour", "pattern": "cells", "strength": 2.0},
}
REGION = {"by": "region", "pattern": "rows", "centres": 2}
UNLABELLED = {"by": "unlabelled", "pattern": "rows"}
SHIFT = {
    **{"by": "shift", "pattern": "rows", "elsewhere": "uniform", "test": "uniform"},
    **{"test_rate": 0.2, "strength": 2.0},
}


@pytest.fixture(scope="module")
def big() -> Graph:
    return random_graph(nodes=600, features=30)


@pytest.fixture
def star() -> Graph:
    """Node 0 with leaves 1 and 2, node 3 apart; one attribute 4, 1, 3, 0."""
    one = [np.array([k]) for k in range(3)]
    features = np.array([[4.0], [1.0], [3.0], [0.0]])
    return build_graph("star", features, np.array([[0, 0], [1, 2]]), np.array([0, 1, 1, -1]), Split(*one))


def z(values):
    return (np.array(values) - np.mean(values)) / np.std(values)


def test_degree_by_hand(star):
    np.testing.assert_allclose(degree_score(star), -z(np.log([3, 2, 2, 1])))


def test_own_values_by_hand(star):
    np.testing.assert_allclose(own_score(star)[:, 0], z([4, 1, 3, 0]))


def test_neighbours_by_hand(star):
    """Means of the neighbours are 2, 4, 4; node 3 has none and stands in the middle."""
    np.testing.assert_allclose(neighbour_score(star)[:, 0], [*z([2, 4, 4]), 0])


def test_classes_by_hand(star):
    """Two classes, one node against two: ±z of 0 and 1, in an order drawn for the dataset; the unlabelled node is 0."""
    score = class_score(star)
    assert score[3] == 0
    up, down = z([1, 0, 0]), z([0, 1, 1])
    assert any(np.allclose(score[:3], expected) for expected in (up, down))
    orders = {tuple(np.sign(class_score(replace(star, name=f"star{k}")))) for k in range(20)}
    assert len(orders) == 2  # another dataset, another order
    np.testing.assert_array_equal(score, class_score(star))


def test_what_is_missing_by_nature_has_no_say(star):
    known = np.array([[True], [False], [True], [True]])
    gap = replace(star, known=known)
    spoiled = replace(gap, features=sp.csr_array(np.array([[4], [1e9], [3], [0]], dtype=np.float32)))
    np.testing.assert_allclose(own_score(gap)[:, 0], np.insert(z([4, 3, 0]), 1, 0))
    np.testing.assert_allclose(own_score(spoiled), own_score(gap))


@pytest.mark.parametrize("name", ["self", "neighbour"])
def test_the_rate_is_that_of_the_entries_that_can_be_hidden(big, name):
    """Half of the entries are missing by nature, in some columns all but one: that one is never hidden."""
    known = np.random.default_rng(1000).random(big.features.shape) < 0.5
    known[1:, :3], known[0, :3] = False, True
    gaps = replace(big, known=known, features=sp.csr_array(np.where(known, big.features.toarray(), 0)))
    chance = hiding_probabilities(gaps, CHANCE[name], 0.9)
    assert abs(chance[known].mean() - 0.9) < 1e-6
    seen = [observe(gaps, CHANCE[name], 0.9, seed).dense() for seed in range(20)]
    assert not np.any(np.array(seen)[:, ~known])
    hidden = 1 - np.mean(seen, axis=0)[:, 3:][known[:, 3:]].mean()
    assert abs(hidden - chance[:, 3:][known[:, 3:]].mean()) < 0.005
    assert all(mask.any(axis=0).all() for mask in seen)


def test_a_constant_column_has_no_order(big):
    """Its values differ from their mean by rounding alone, which must not become a score of one deviation."""
    column = np.full((600, 1), 123456.7, dtype=np.float32)
    constant = replace(big, features=sp.csr_array(column))
    np.testing.assert_array_equal(own_score(constant), 0)
    connected = np.diff(big.adjacency.indptr) > 0
    np.testing.assert_allclose(neighbour_score(constant)[connected], 0, atol=1e-6)


def test_entries_that_hardly_differ():
    """Where all but one have the same score and the strength is next to nothing, rounding must not lose the rate."""
    score = np.zeros(100_000)
    score[0] = 1.0
    for strength in (1e-13, 1e-11, 1e-9):
        np.testing.assert_allclose(probabilities(score, strength, 0.3), 0.3, rtol=1e-8)


@pytest.mark.parametrize("rate", [0.005, 0.1, 0.5, 0.9, 0.995])
@pytest.mark.parametrize("strength", [-3.0, 0.0, 0.5, 2.0, 20.0])
def test_the_mean_probability_is_the_rate(rate, strength):
    score = np.random.default_rng(0).standard_normal((200, 30))
    chance = probabilities(score, strength, rate)
    assert abs(chance.mean() - rate) < 1e-6
    assert ((chance >= 0) & (chance <= 1)).all()
    order = np.argsort(score, axis=None)
    steps = np.diff(chance.ravel()[order])
    assert (steps * np.sign(strength) >= 0).all()  # monotone in u, in the direction of the strength
    assert (np.ptp(chance) > 0) == (strength != 0)


def test_the_formula():
    """All probabilities have the same b = logit(P) - s u."""
    score = np.array([-1.0, 0.0, 0.3, 2.0])
    chance = probabilities(score, 1.5, 0.3)
    offset = np.log(chance / (1 - chance)) - 1.5 * score
    np.testing.assert_allclose(offset, offset[0])


def test_rate_0_hides_nothing(big):
    for missing in CHANCE.values():
        assert observe(big, missing, 0.0, 1).missing_share == 0


@pytest.mark.parametrize("name", CHANCE)
def test_masks_follow_the_probabilities(big, name):
    """Over many masks every entry is hidden as often as its probability says, and each mask has about the rate."""
    missing, rate, draws = CHANCE[name], 0.6, 400
    chance = hiding_probabilities(big, missing, rate)
    masks = [observe(big, missing, rate, seed) for seed in range(draws)]
    hidden = np.mean([~(m.dense() if m.rows is None else m.rows) for m in masks], axis=0)
    error = np.sqrt(chance * (1 - chance) / draws)
    # Where P is next to 0 or 1 a single draw is many deviations: the bound of Bernstein's inequality has a floor.
    assert (np.abs(hidden - chance) < 5.5 * error + 12 / draws).all()
    assert np.corrcoef(hidden.ravel(), chance.ravel())[0, 1] > 0.99
    spread = np.sqrt((chance * (1 - chance)).sum()) / chance.size
    assert all(abs(mask.missing_share - rate) < 5 * spread for mask in masks)
    assert (masks[0].rows is None) == (missing["pattern"] == "cells")


def test_a_column_hidden_as_a_whole_shows_one_value(big):
    for name in ("self", "neighbour"):
        for seed in range(5):
            assert observe(big, CHANCE[name], 0.999, seed).dense().any(axis=0).all()
    assert observe(big, CHANCE["degree"], 0.999, 1).rows.any()


def test_the_seed_decides(big):
    for missing in (*CHANCE.values(), REGION, SHIFT):
        one, two, other = (observe(big, missing, 0.5, seed).dense() for seed in (5, 5, 6))
        np.testing.assert_array_equal(one, two)
        assert (one != other).any()


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_regions_are_exact_and_contiguous(big, rate):
    """In a connected graph every hidden node but the centres has a hidden neighbour."""
    ring = np.stack([np.arange(600), np.roll(np.arange(600), 1)])
    graph = build_graph("ring", big.features, ring, big.labels, big.split)
    for seed in range(3):
        hidden = ~observe(graph, REGION, rate, seed).rows
        assert hidden.sum() == min(round(rate * 600), 599)
        pieces = (hidden & ~np.roll(hidden, 1)).sum()
        assert pieces <= REGION["centres"]


def test_regions_go_on_in_other_components():
    """Two paths of five nodes: with one centre and rate 0.8, one is hidden as a whole and the other in part."""
    edges = np.array([[0, 1, 2, 3, 5, 6, 7, 8], [1, 2, 3, 4, 6, 7, 8, 9]])
    one = [np.array([k]) for k in range(3)]
    graph = build_graph("paths", np.ones((10, 1)), edges, np.arange(10) % 2, Split(*one))
    hidden = ~observe(graph, {**REGION, "centres": 1}, 0.8, 0).rows
    assert sorted((hidden[:5].sum(), hidden[5:].sum())) == [3, 5]


def test_unlabelled_shows_training_nodes_only(graph):
    rows = observe(graph, UNLABELLED, 0.0, 1).rows
    np.testing.assert_array_equal(np.flatnonzero(rows), graph.split.train)


@pytest.mark.parametrize("pattern", SCORES)
def test_a_shift_has_a_rate_on_each_side(big, pattern):
    for by in ("uniform", *SCORES[pattern]):
        shift = {**SHIFT, "pattern": pattern, "elsewhere": by, "test": "uniform"}
        chance = hiding_probabilities(big, shift, 0.7)
        test = np.isin(np.arange(600), big.split.test)
        assert abs(chance[~test].mean() - 0.7) < 1e-6
        assert np.ptp(chance[~test]) == 0 if by == "uniform" else np.ptp(chance[~test]) > 0.1
        np.testing.assert_allclose(chance[test], 0.2)
    same = hiding_probabilities(big, {**SHIFT, "pattern": pattern, "test_rate": None}, 0.7)
    np.testing.assert_allclose(same, 0.7)
    masks = [observe(big, {**SHIFT, "pattern": pattern}, 0.7, seed).dense() for seed in range(20)]
    hidden = 1 - np.mean(masks, axis=0)
    assert abs(hidden[test].mean() - 0.2) < 0.03
    assert abs(hidden[~test].mean() - 0.7) < 0.03


@pytest.mark.parametrize(
    ("missing", "rate", "words"),
    [
        ({**CHANCE["degree"], "by": "height"}, 0.5, "missing.by=height: choose one of degree, class, self"),
        ({**CHANCE["degree"], "pattern": "cells"}, 0.5, "missing.pattern=cells: choose one of rows"),
        (
            {**CHANCE["degree"], "strength": "much"},
            0.5,
            "missing.strength=much: give a number from -50 to 50",
        ),
        ({**CHANCE["self"], "pattern": "rows"}, 0.5, "missing.pattern=rows: choose one of cells"),
        ({**REGION, "centres": 0}, 0.5, "missing.centres=0: give a whole number of at least 1"),
        ({**REGION, "strength": 1.0}, 0.5, "missing.strength: by region has no such key"),
        ({**REGION, "pattern": "cells"}, 0.5, "missing.pattern=cells: choose rows"),
        (UNLABELLED, 0.5, "rate=0.5: .*leave it out, or give 0"),
        ({**SHIFT, "test": "self"}, 0.5, "missing.test=self: choose one of uniform, degree, class"),
        ({**SHIFT, "test_rate": 1.0}, 0.5, "missing.test_rate=1.0: give a share"),
        ({"by": "shift", "pattern": "rows"}, 0.5, "missing.elsewhere: by shift needs this key"),
    ],
)
def test_nonsense_is_refused(missing, rate, words):
    with pytest.raises(RequestError, match=words):
        check_missing(missing, rate)
