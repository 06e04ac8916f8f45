"""Statistics against scipy and against computations by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from pagnn_bench.analysis.stats import (
    average_over_cells,
    average_ranks,
    compare,
    critical_difference,
    friedman,
    holm,
    mean_interval,
    paired_t,
)


def test_interval_of_balanced_masks_is_the_t_interval_of_the_mask_means():
    groups = [[1.0, 3.0], [4.0, 6.0], [9.0, 9.0]]
    interval = mean_interval(groups)
    means = [2.0, 5.0, 9.0]
    low, high = scipy_stats.t.interval(0.95, 2, np.mean(means), scipy_stats.sem(means))
    assert (interval.mean, interval.low, interval.high) == pytest.approx((16 / 3, low, high))
    assert (interval.df, interval.over) == (2, "masks")


def test_more_seeds_of_the_same_masks_do_not_narrow_the_interval():
    few = mean_interval([[1.0], [3.0]])
    many = mean_interval([[1.0] * 50, [3.0] * 50])
    assert (many.low, many.high) == pytest.approx((few.low, few.high))


def test_a_mask_with_more_seeds_weighs_no_more_than_the_others():
    # Mask means 1 and 5: mean 3, standard error (4 / √2) / √2 = 2.
    interval = mean_interval([[1.0, 1.0, 1.0], [5.0]])
    half = scipy_stats.t.ppf(0.975, 1) * 2
    assert (interval.mean, interval.low, interval.high) == pytest.approx((3.0, 3.0 - half, 3.0 + half))


def test_one_mask_covers_the_seeds_and_says_so():
    values = [1.0, 2.0, 6.0]
    interval = mean_interval([values])
    low, high = scipy_stats.t.interval(0.95, 2, 3.0, scipy_stats.sem(values))
    assert (interval.low, interval.high, interval.over) == (pytest.approx(low), pytest.approx(high), "seeds")


@pytest.mark.parametrize("groups", [[], [[5.0]]])
def test_no_interval_without_any_spread(groups):
    assert mean_interval(groups) is None


@pytest.mark.parametrize("seeds", [(4, 4, 4, 4, 4), (20, 4, 4, 4, 4), (20, 1)])
def test_the_interval_covers_the_truth_as_often_as_it_says(seeds):
    """Masks that vary more than their seeds do, as at the paper's high rates."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(1000):
        groups = [rng.normal(0, 3) + rng.normal(0, 1, count) for count in seeds]
        interval = mean_interval([group.tolist() for group in groups])
        covered += interval.low <= 0 <= interval.high
    assert 0.93 < covered / 1000 < 0.97


def test_paired_t_is_scipys():
    first, second = [3.0, 5.0, 4.0, 8.0], [2.0, 5.5, 3.0, 6.0]
    differences = np.subtract(first, second)
    assert paired_t(differences) == pytest.approx(scipy_stats.ttest_rel(first, second).pvalue)


def test_paired_t_at_its_edges():
    assert paired_t([1.0]) is None
    assert paired_t([0.0, 0.0]) == 1.0
    # Accuracies come in steps: that two masks agree is chance, not certainty.
    assert paired_t([2.0, 2.0]) == 1.0
    assert paired_t([0.1 + 0.2, 0.3]) == 1.0


def test_average_over_cells_by_hand():
    # Means 1 and 4; variances of the means 1/2 · 2 = 1 and 8/2 = 4: (1 + 4) / 2² on 25 / (1/1 + 16/1) degrees.
    found = average_over_cells([[0.0, 2.0], [2.0, 6.0], [7.0]])
    df, error = 25 / 17, math.sqrt(5) / 2
    half = scipy_stats.t.ppf(0.975, df) * error
    assert found.interval.mean == pytest.approx(2.5)
    assert (found.interval.low, found.interval.high) == pytest.approx((2.5 - half, 2.5 + half))
    assert found.p_value == pytest.approx(2 * scipy_stats.t.sf(2.5 / error, df))
    assert average_over_cells([[1.0], []]) is None


def test_average_of_one_cell_is_the_paired_t_test():
    differences = [0.5, 1.5, -0.25, 2.0]
    assert average_over_cells([differences]).p_value == pytest.approx(paired_t(differences))


def test_holm_by_hand_and_in_any_order():
    values = {0.01: 0.04, 0.02: 0.06, 0.03: 0.06, 0.5: 0.5}  # x4, x3, x2 kept from falling, x1
    for order in itertools.permutations(values):
        assert holm(order) == pytest.approx([values[p] for p in order])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_wins_ties_and_losses_are_corrected_over_the_cells():
    clear, unclear = [1.0, 1.1, 0.9, 1.05], [1.0, -1.0, 0.5, -0.4]
    found = compare([clear, [-value for value in clear], unclear, [3.0]])
    assert (found.wins, found.ties, found.losses, found.cells) == (1, 1, 1, 3)
    assert (found.ahead, found.behind) == (2, 1)  # the clear one, and the unclear one by 0.025
    tied = compare([[0.1 + 0.2, -0.3], [0.5, -0.5]])  # 5.6e-17 is not ahead
    assert (tied.ahead, tied.behind, tied.ties) == (0, 0, 2)
    assert found.p_values == pytest.approx(holm([paired_t(clear), paired_t(clear), paired_t(unclear)]))
    assert compare([]).average is None


def test_average_ranks_share_ties():
    scores = np.array([[0.9, 0.8, 0.7], [0.5, 0.5, 0.9]])
    expected = np.mean([scipy_stats.rankdata(-row) for row in scores], axis=0)
    assert average_ranks(scores) == pytest.approx(expected)
    assert average_ranks(scores) == pytest.approx([1.75, 2.25, 2.0])


def test_friedman_is_scipys_and_knows_when_nothing_differs():
    scores = np.random.default_rng(0).normal(size=(8, 4))
    assert friedman(scores) == pytest.approx(scipy_stats.friedmanchisquare(*scores.T).pvalue)
    assert friedman(np.ones((3, 3))) == 1.0


@pytest.mark.parametrize(("methods", "q"), [(2, 1.960), (5, 2.728), (10, 3.164)])
def test_critical_difference_has_the_published_quantiles(methods, q):
    """Demšar (2006), Table 5."""
    cells = 14
    expected = q * math.sqrt(methods * (methods + 1) / (6 * cells))
    assert critical_difference(methods, cells) == pytest.approx(expected, abs=1e-3)
