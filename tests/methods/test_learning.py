"""What trained imputation models share: the scale of the features, held-out entries, the best weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import nn

from pagnn_bench.config.errors import RequestError
from pagnn_bench.data.graph import Split
from pagnn_bench.methods.learning import BestWeights, UnitRange, hold_out
from pagnn_bench.methods.values import flag, fraction, positive, whole
from pagnn_bench.missing import IncompleteGraph, Observed

NONE = np.zeros(0, dtype=np.int64)


def incomplete(values: list[list[float]], observed: list[list[int]]) -> IncompleteGraph:
    mask = Observed(np.shape(values), cells=np.array(observed, dtype=bool))
    features = mask.apply(sp.csr_array(np.array(values, dtype=np.float32)))
    empty = sp.csr_array((len(values), len(values)), dtype=np.float32)
    return IncompleteGraph(empty, features, mask, np.zeros(len(values)), 1, Split(NONE, NONE, NONE))


def test_columns_are_scaled_by_their_observed_values():
    #          plain, with a negative, hidden extremes, binary
    values = [[2.0, -1.0, 1.0, 0.0], [6.0, 3.0, 3.0, 1.0], [4.0, 0.0, 99.0, 1.0]]
    graph = incomplete(values, [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0]])
    unit = UnitRange.of(graph)
    np.testing.assert_allclose(unit.scaled(graph), [[0, 0, 0, 0], [1, 1, 1, 1], [0.5, 0.25, 0, 0]])
    assert unit.scaled(graph).dtype == np.float32
    np.testing.assert_allclose(unit.restored(np.full((3, 4), 0.5)), np.tile([4.0, 1.0, 2.0, 0.5], (3, 1)))


def test_columns_with_one_value_or_none():
    #          only 0, only 1, only 5, only -2, nothing observed
    values = [[0, 1, 5, -2, 7], [0, 1, 5, -2, 7], [1, 0, 8, 3, 7]]
    graph = incomplete(values, [[1, 1, 1, 1, 0], [1, 1, 1, 1, 0], [0, 0, 0, 0, 0]])
    unit = UnitRange.of(graph)
    np.testing.assert_array_equal(unit.scaled(graph)[0], [0, 1, 1, 0, 0])
    np.testing.assert_array_equal(unit.scaled(graph)[2], np.zeros(5))
    np.testing.assert_array_equal(unit.restored(np.zeros((1, 5)))[0], [0, 0, 0, -2, 0])
    np.testing.assert_array_equal(unit.restored(np.ones((1, 5)))[0], [1, 1, 5, 0, 0])


def test_held_out_entries_are_a_share_of_the_observed_ones():
    known = np.random.default_rng(0).random((200, 50)) < 0.5
    learned, held = hold_out(known, 0.1, np.random.default_rng(1))
    np.testing.assert_array_equal(learned | held, known)
    assert not (learned & held).any()
    assert held.sum() == pytest.approx(0.1 * known.sum(), rel=0.15)
    again = hold_out(known, 0.1, np.random.default_rng(1))
    np.testing.assert_array_equal(again[1], held)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.999])
def test_a_single_entry_is_learned_from_and_judged_by(share):
    known = np.zeros((4, 3), dtype=bool)
    known[2, 1] = True
    for mask in hold_out(known, share, np.random.default_rng(0)):
        np.testing.assert_array_equal(mask, known)


def test_the_best_weights_come_back():
    model = nn.Linear(1, 1)
    best = BestWeights(model, patience=3)
    over = []
    for step, score in enumerate([5.0, 2.0, 2.0, 4.0, 3.0], start=1):
        with torch.no_grad():
            model.weight.fill_(float(step))
        over.append(best.is_over(score, step))
    assert over == [False, False, False, False, True]  # three steps after the second; a tie is no improvement
    best.restore()
    assert model.weight.item() == 2.0


def test_a_score_that_is_no_number_is_an_error():
    best = BestWeights(nn.Linear(1, 1), patience=3)
    with pytest.raises(FloatingPointError, match="diverged in step 7"):
        best.is_over(math.nan, 7)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (whole, [1, 500], [0, -1, 2.0, "3", True, None]),
        (positive, [1, 0.5], [0, -1.0, math.inf, math.nan, "1", True, None]),
        (flag, [True, False], ["no", "off", 1, 0, None]),
        (fraction, [0, 0.5, 0.99], [1, 1.0, -0.1, math.nan, "0.5", False, None]),
    ],
)
def test_hyper_parameters_are_checked(check, good, bad):
    assert [check("width", value) for value in good] == good
    for value in bad:
        with pytest.raises(RequestError, match=f"method.width={value}: (give a|choose) "):
            check("width", value)
