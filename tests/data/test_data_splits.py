"""Random splits are stratified, disjoint, seeded and never take an unlabelled node."""

from __future__ import annotations

import numpy as np
import pytest

from pagnn_bench.config.errors import RequestError
from pagnn_bench.data.graph import Split
from pagnn_bench.data.splits import choose_split, development_split, random_split

LABELS = np.repeat([0, 1, 2, -1], [30, 20, 50, 10])
KEYS = {"name": "toy", "split_seed": 0, "train_per_class": 5, "num_val": 10, "num_test": None}


def draw(**changed) -> Split:
    return random_split(
        LABELS, **({"seed": 0, "train_per_class": 5, "num_val": 10, "num_test": 20} | changed)
    )


def test_random_split_is_stratified_and_disjoint():
    split = draw()
    assert split.sizes == (15, 10, 20)
    assert np.bincount(LABELS[split.train]).tolist() == [5, 5, 5]
    everything = np.concatenate([split.train, split.val, split.test])
    assert len(set(everything)) == 45
    assert (LABELS[everything] >= 0).all()


def test_all_the_rest_is_every_labelled_node():
    assert draw(num_test=None).sizes == (15, 10, 75)


def test_the_seed_decides():
    np.testing.assert_array_equal(draw().test, draw().test)
    assert set(draw().train) != set(draw(seed=1).train)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"train_per_class": 21}, "data.train_per_class=21: class 1 has 20 labelled nodes"),
        ({"num_val": 80}, "only 85 labelled nodes remain"),
        ({"num_val": 85, "num_test": None}, "only 85 labelled nodes remain"),
    ],
)
def test_too_few_nodes(changed, words):
    with pytest.raises(RequestError, match=words):
        draw(**changed)


def test_a_published_split_is_made_only_when_chosen():
    published = {"public": lambda: pytest.fail("not chosen")}
    assert choose_split(KEYS | {"split": "random"}, LABELS, published).sizes == (15, 10, 75)


def test_auto_prefers_the_published_split():
    fixed = Split(np.array([0]), np.array([1]), np.array([2]))
    assert choose_split(KEYS | {"split": "auto"}, LABELS, {"file": lambda: fixed}) is fixed
    assert choose_split(KEYS | {"split": "auto"}, LABELS, {}).sizes == (15, 10, 75)


def test_an_unknown_split_names_the_choices():
    with pytest.raises(RequestError, match=r"data.split=public: .* gcnmf, random, auto"):
        choose_split(KEYS | {"split": "public"}, LABELS, {"gcnmf": draw})


@pytest.mark.parametrize("key", ["split_seed", "train_per_class", "num_val", "num_test"])
@pytest.mark.parametrize("value", [-1, 1.5, "many", True])
def test_a_wrong_value_names_its_key(key, value):
    with pytest.raises(RequestError, match=f"data.{key}={value}: give a whole number"):
        choose_split(KEYS | {"split": "random", key: value}, LABELS, {})


def develop(seed: int = 0, development: int = 40, train_per_class: int = 5) -> Split:
    return development_split(LABELS, seed=seed, development=development, train_per_class=train_per_class)


def test_development_nodes_train_or_validate_and_all_others_test():
    split = develop()
    assert split.sizes == (15, 25, 60)
    assert split.drawn
    assert np.bincount(LABELS[split.train]).tolist() == [5, 5, 5]
    assert sorted([*split.train, *split.val, *split.test]) == np.flatnonzero(LABELS >= 0).tolist()
    np.testing.assert_array_equal(develop().train, split.train)
    assert set(develop(seed=1).test) != set(split.test)


def test_who_validates_is_not_stratified():
    """The shares of classes among the development nodes are those of all nodes, 0.3, 0.2 and 0.5, on average."""
    counts = np.mean(
        [np.bincount(LABELS[np.r_[s.train, s.val]], minlength=3) for s in map(develop, range(300))], axis=0
    )
    np.testing.assert_allclose(counts, [12, 8, 20], atol=0.5)  # five standard errors


def test_a_draw_with_too_few_of_a_class_is_repeated():
    """With 8 of class 1 expected among 40, every second draw has fewer; a split still has 8."""
    assert {develop(seed, 40, 8).sizes for seed in range(20)} == {(24, 16, 60)}


@pytest.mark.parametrize(
    ("development", "per_class", "words"),
    [
        (15, 5, "protocol.split.development=15: give more than the 15 training nodes"),
        (100, 5, "fewer than the 100 labelled"),
        (64, 21, "protocol.split.train_per_class=21: some class has fewer among 64 random nodes"),
    ],
)
def test_a_development_split_that_cannot_be(development, per_class, words):
    with pytest.raises(RequestError, match=words):
        develop(0, development, per_class)
