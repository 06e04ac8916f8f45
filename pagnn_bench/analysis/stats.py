"""Statistics of two-level results, as pure functions on arrays: trials are grouped by mask, and masks are what varies.

Seeds of one mask share its missing entries, so they are not independent draws of the quantity of interest; masks are.
Hence the unit of intervals and paired tests is the mask (with a single mask, intervals are over its seeds); the unit of
ranks is the cell.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
ROUNDING = 1e-9  # in percentage points: a smaller spread is floating-point noise


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval.

    Attributes:
        df: degrees of freedom of the t distribution behind it.
        over: the level whose variation it covers: ``masks``, or ``seeds`` where there is a single mask.
    """

    mean: float
    low: float
    high: float
    df: float
    over: str = "masks"


def mean_interval(groups: Sequence[Sequence[float]], confidence: float = CONFIDENCE) -> Interval | None:
    """The mean of the mask means and its t interval, with one degree of freedom fewer than masks.

    Every mask counts once, however many seeds it has. Weighted by seeds, the mask with the most seeds would dominate,
    and methods with different numbers of seeds would be averaged over different masks. With a single mask, only the
    variation over its seeds is left.

    Args:
        groups: G masks, each with the values of its trials; none empty.

    Returns:
        None for fewer than two trials, whose spread is unknown.
    """
    over = "seeds" if len(groups) == 1 else "masks"
    values = np.array(groups[0] if over == "seeds" else [np.mean(group) for group in groups], dtype=float)
    if len(values) < 2:
        return None
    error = values.std(ddof=1) / math.sqrt(len(values))
    return _t_interval(values.mean(), error, len(values) - 1, confidence, over)


def _t_interval(
    mean: float, error: float, df: float, confidence: float = CONFIDENCE, over: str = "masks"
) -> Interval:
    from scipy import special  # slow to import, and a command that only prints help does not need it

    half = float(special.stdtrit(df, 0.5 + confidence / 2)) * float(error)
    return Interval(float(mean), float(mean) - half, float(mean) + half, float(df), over)


def paired_t(differences: Sequence[float]) -> float | None:
    """Two-sided p value of the paired t test: is the mean of the differences [m] zero?

    A t test and not a rank test, because with the paper's five masks Wilcoxon's smallest p value is 2/2⁵ = 0.0625: it
    could never find anything. It assumes that mask means, over the seeds there are, vary normally.

    Returns:
        None for fewer than two differences. Differences that are all equal give 1: accuracies come in steps, so a few
        can agree by chance, which does not prove a spread of zero.
    """
    values = np.asarray(differences, dtype=float)
    if len(values) < 2:
        return None
    error = values.std(ddof=1) / math.sqrt(len(values))
    return _t_p_value(values.mean(), error, len(values) - 1)


def _t_p_value(mean: float, error: float, df: float) -> float:
    from scipy import special

    if error < ROUNDING:
        return 1.0
    return float(2 * special.stdtr(df, -abs(mean) / error))


@dataclass(frozen=True)
class Average:
    """An average over cells with interval and two-sided p value against zero."""

    interval: Interval
    p_value: float


def average_over_cells(cells: Sequence[Sequence[float]], confidence: float = CONFIDENCE) -> Average | None:
    """The average over cells of the mean paired difference, and its uncertainty from the choice of masks.

    Cells count equally and are taken as given, so the result is about these cells and no others. The variance is
    Σ_c s_c² / m_c over the square of the number of cells, with Satterthwaite's degrees of freedom.

    Args:
        cells: for each cell the differences on its m_c masks; a cell with a single mask is left out.
        confidence: of the interval.

    Returns:
        None if no cell has two masks.
    """
    usable = [np.asarray(cell, dtype=float) for cell in cells if len(cell) > 1]
    if not usable:
        return None
    mean = float(np.mean([cell.mean() for cell in usable]))
    variances = np.array([cell.var(ddof=1) / len(cell) for cell in usable])
    freedom = np.array([len(cell) - 1 for cell in usable], dtype=float)
    total = float(variances.sum())
    df = total**2 / float((variances**2 / freedom).sum()) if total > 0 else float(freedom.sum())
    error = math.sqrt(total) / len(usable)
    return Average(_t_interval(mean, error, df, confidence), _t_p_value(mean, error, df))


def welch(first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE) -> Average | None:
    """The difference of two means of independent values, first minus second: Welch's t test and its interval.

    The differences of two cells, one of them with its sign turned, have half this average with half its error.

    Returns:
        None if one of them has fewer than two values.
    """
    if min(len(first), len(second)) < 2:
        return None
    half = average_over_cells([first, [-value for value in second]], confidence)
    assert half is not None
    interval = half.interval
    doubled = Interval(2 * interval.mean, 2 * interval.low, 2 * interval.high, interval.df, over="seeds")
    return Average(doubled, half.p_value)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: adjusted p values, in the order given."""
    count = len(p_values)
    adjusted = [0.0] * count
    running = 0.0
    for rank, place in enumerate(sorted(range(count), key=lambda k: p_values[k])):
        running = max(running, min(1.0, (count - rank) * p_values[place]))
        adjusted[place] = running
    return adjusted


@dataclass(frozen=True)
class Comparison:
    """Two methods on the cells that both have on at least two common masks.

    Attributes:
        ahead, behind: cells in which the mean of the first is higher or lower, however slightly.
        wins, ties, losses: cells in which the first is better, not told apart, worse by the paired t test at 5 %, with
            Holm's correction over the cells of this comparison.
        thin: cells with only two masks: with one degree of freedom, and corrected, hardly any is won or lost.
        p_values: the corrected p values, one per cell.
        average: of the differences over the cells; None without a cell.
    """

    ahead: int
    behind: int
    wins: int
    ties: int
    losses: int
    thin: int
    p_values: list[float]
    average: Average | None

    @property
    def cells(self) -> int:
        return self.wins + self.ties + self.losses


def compare(cells: Sequence[Sequence[float]], alpha: float = 1 - CONFIDENCE) -> Comparison:
    """Compare two methods by their differences in each cell; see :func:`average_over_cells` for ``cells``."""
    usable = [cell for cell in cells if len(cell) > 1]
    raw = [paired_t(cell) for cell in usable]
    adjusted = holm([p for p in raw if p is not None])
    signs = [_sign(float(np.mean(cell))) for cell in usable]
    outcomes = [sign if p < alpha else 0 for sign, p in zip(signs, adjusted)]
    tally = (outcomes.count(1), outcomes.count(0), outcomes.count(-1))
    thin = sum(len(cell) == 2 for cell in usable)
    return Comparison(signs.count(1), signs.count(-1), *tally, thin, adjusted, average_over_cells(usable))


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """First and third quartile, inclusive."""
    if len(values) == 1:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def _sign(value: float) -> int:
    return 0 if abs(value) < ROUNDING else 1 if value > 0 else -1


def average_ranks(scores: np.ndarray) -> np.ndarray:
    """Mean rank per method: scores [cells, methods], higher is better → [methods], 1 is best; ties share a rank."""
    better = (scores[:, None, :] > scores[:, :, None]).sum(axis=2)
    equal = (scores[:, None, :] == scores[:, :, None]).sum(axis=2)
    return (better + (equal + 1) / 2).mean(axis=0)


def friedman(scores: np.ndarray) -> float:
    """p value of Friedman's test that all methods rank alike: scores [cells, methods], at least 3 methods."""
    from scipy import stats  # takes a second to import

    if (scores == scores[:, :1]).all():
        return 1.0
    return float(stats.friedmanchisquare(*scores.T).pvalue)


def critical_difference(methods: int, cells: int, alpha: float = 1 - CONFIDENCE) -> float:
    """Nemenyi's critical difference of average ranks (Demšar 2006, section 3.2.2)."""
    from scipy import stats

    q = stats.studentized_range.ppf(1 - alpha, methods, np.inf) / math.sqrt(2)
    return float(q * math.sqrt(methods * (methods + 1) / (6 * cells)))
