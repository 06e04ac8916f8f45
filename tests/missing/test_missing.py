"""Masks: statistics, determinism, and that hidden values are gone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from pagnn_bench.config.errors import RequestError
from pagnn_bench.missing import Observed, draw_observed, hide
from tests.conftest import random_observed

ROWS = {"pattern": "rows", "exact": False}
CELLS = {"pattern": "cells", "exact": False}
BIASED = {"pattern": "biased", "exact": False, "low": 0.1, "high": 0.9}


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_rates_are_met_within_four_sigma(rate):
    n, d = 5000, 40
    rows = draw_observed(ROWS, rate, (n, d), seed=1)
    assert abs(rows.missing_share - rate) < 4 * np.sqrt(rate * (1 - rate) / n)
    cells = draw_observed(CELLS, rate, (n, d), seed=1)
    assert abs(cells.missing_share - rate) < 4 * np.sqrt(rate * (1 - rate) / (n * d))
    # Entries are hidden independently: no row and no column is hit more than chance allows.
    assert abs(cells.cells.mean(axis=0) - (1 - rate)).max() < 5 * np.sqrt(rate * (1 - rate) / n)
    assert abs(cells.cells.mean(axis=1) - (1 - rate)).max() < 5.5 * np.sqrt(rate * (1 - rate) / d)


def test_type_1_hides_whole_rows():
    rows = draw_observed(ROWS, 0.5, (100, 7), seed=1)
    assert rows.cells is None
    assert set(rows.dense().sum(axis=1)) == {0, 7}


@pytest.mark.parametrize("missing", [ROWS, CELLS, BIASED])
def test_the_seed_decides(missing):
    shape = (300, 20)
    one, two, other = (draw_observed(missing, 0.4, shape, seed).dense() for seed in (5, 5, 6))
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()


def test_blocks_do_not_change_the_mask(monkeypatch):
    """Masks are drawn block by block; the blocks are an implementation detail."""
    shape = (7, 3)
    whole = np.random.default_rng(9).random(shape) >= 0.5
    np.testing.assert_array_equal(draw_observed(CELLS, 0.5, shape, 9).cells, whole)
    big = (3000, 2000)  # more than one block
    np.testing.assert_array_equal(
        draw_observed(CELLS, 0.5, big, 9).cells, np.random.default_rng(9).random(big) >= 0.5
    )


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.999])
def test_exact_counts(rate):
    rows = draw_observed({**ROWS, "exact": True}, rate, (1000, 3), seed=2)
    assert (~rows.rows).sum() == round(rate * 1000)
    cells = draw_observed({**CELLS, "exact": True}, rate, (100, 30), seed=2)
    assert (~cells.cells).sum() == round(rate * 3000)


def test_biased_columns():
    cells = draw_observed(BIASED, 0.4, (4000, 500), seed=3).cells
    rates = 1 - cells.mean(axis=0)
    badly_hit = rates > 0.5
    assert abs(rates[badly_hit] - 0.9).max() < 0.03
    assert abs(rates[~badly_hit] - 0.1).max() < 0.03
    # (0.4 - 0.1) / (0.9 - 0.1) of the columns
    assert abs(badly_hit.mean() - 0.375) < 4 * np.sqrt(0.375 * 0.625 / 500)


def test_something_always_stays_observed():
    for missing in (ROWS, CELLS, {**ROWS, "exact": True}, {**CELLS, "exact": True}):
        for seed in range(20):
            assert draw_observed(missing, 0.99, (3, 2), seed).dense().any()
    for seed in range(20):
        assert draw_observed(BIASED, 0.9, (2, 2), seed).dense().any()


def test_rate_0_hides_nothing():
    for missing in (ROWS, CELLS):
        assert draw_observed(missing, 0.0, (50, 4), seed=1).missing_share == 0


@pytest.mark.parametrize(
    ("missing", "rate"),
    [
        ({**BIASED, "exact": True}, 0.5),
        (BIASED, 0.95),
        (BIASED, 0.05),
        ({**BIASED, "low": 0.9, "high": 0.1}, 0.5),
        ({"pattern": "columns", "exact": False}, 0.5),
        ({"pattern": "rows", "exact": "maybe"}, 0.5),
    ],
)
def test_nonsense_is_refused(missing, rate):
    with pytest.raises(RequestError):
        draw_observed(missing, rate, (10, 10), 0)


@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_hidden_values_are_not_in_the_incomplete_graph(graph, pattern):
    observed = random_observed(graph, pattern)
    spoiled = sp.csr_array(np.where(observed.dense(), graph.features.toarray(), np.float32(np.nan)))
    known = observed.apply(spoiled)
    np.testing.assert_array_equal(known.toarray(), np.where(observed.dense(), graph.features.toarray(), 0))
    incomplete = hide(graph, observed)
    assert incomplete.complete is None
    assert incomplete.features.dtype == np.float32
    np.testing.assert_array_equal(incomplete.features.toarray(), known.toarray())


@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_row_normalisation_uses_observed_entries_only(graph, pattern):
    observed = random_observed(graph, pattern)
    known = np.where(observed.dense(), graph.features.toarray(), 0)
    total = known.sum(axis=1, keepdims=True)
    expected = np.divide(known, total, out=np.zeros_like(known), where=total > 0)
    np.testing.assert_allclose(hide(graph, observed, "row").features.toarray(), expected, rtol=1e-6)


def test_only_an_oracle_sees_the_complete_features(graph):
    observed = random_observed(graph, "rows")
    assert hide(graph, observed, oracle=True).complete is graph.features


def test_a_mask_is_rows_or_cells():
    with pytest.raises(ValueError, match="either"):
        Observed((2, 2))
    with pytest.raises(ValueError, match="boolean"):
        Observed((2, 2), rows=np.ones(3, dtype=bool))
    with pytest.raises(ValueError, match="boolean"):
        Observed((2, 2), cells=np.ones((2, 2)))
