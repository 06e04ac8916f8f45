"""Methods on one graph, ranked by mean test accuracy, and which of them cannot be told apart from the best.

The best method is itself chosen by the numbers, so its lead must not be tested as if the method had been named in
advance. With k methods, each is tested against the best at 5 % / (k - 1) (Bonferroni). Whichever method is truly the
best, it is dropped only if one of k - 1 methods that are no better passes a test at that level, which has a probability
of 5 % at most. So those that remain are a 95 % confidence set for the best. Holm's correction would not do: it loosens
the later tests, one of which may compare the truly best method with a winner by chance.

All this is about other masks or splits of the same graph, not about other graphs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from pagnn_bench.analysis.stats import (
    CONFIDENCE,
    ROUNDING,
    Average,
    Interval,
    average_over_cells,
    mean_interval,
    welch,
)
from pagnn_bench.analysis.summary import Summary, summarise
from pagnn_bench.records.store import Trial

ALPHA = 1 - CONFIDENCE


@dataclass(frozen=True)
class Contender:
    """A method and its trials.

    Attributes:
        name: as in ``method=NAME``.
        label: as people read it.
        trials: the recorded trials, of those requested.
        wanted: how many trials were requested.
        reason: why trials failed, if any did.
    """

    name: str
    label: str
    trials: tuple[Trial, ...]
    wanted: int
    reason: str = ""

    @cached_property
    def summary(self) -> Summary:
        return summarise(self.trials)

    @property
    def failed(self) -> int:
        """Trials without a result: they diverged or crashed."""
        return self.wanted - self.summary.trials

    @property
    def seconds(self) -> float | None:
        """Mean time of a trial: its share of the time its batch took to prepare, train and evaluate."""
        spent = [
            sum(trial.batch.facts.get(f"{part}_seconds", 0.0) for part in ("prepare", "train", "eval"))
            / len(trial.batch.records)
            for trial in self.trials
            if trial.ok
        ]
        return fmean(spent) if spent else None

    @property
    def rmse(self) -> float | None:
        """Error of the filled-in values, where it is known, averaged over masks."""
        errors = {
            trial.mask: trial.batch.facts["impute_rmse"]
            for trial in self.trials
            if trial.ok and "impute_rmse" in trial.batch.facts
        }
        return fmean(errors.values()) if errors else None


@dataclass(frozen=True)
class Place:
    """A method in the ranking.

    Attributes:
        rank: 1 is the best, equal means share a rank; None for a method that lacks masks: its mean is over others.
        mean, interval: of the test accuracy in percent; None without a finished trial.
        behind: points behind the best, which itself is 0 behind.
        margin: the interval of ``behind``, corrected for the number of comparisons; None for the best itself and where
            the spread is unknown.
        p_value: of the test against the best, corrected for the number of comparisons.
    """

    contender: Contender
    rank: int | None = None
    mean: float | None = None
    interval: Interval | None = None
    behind: float | None = None
    margin: Interval | None = None
    p_value: float | None = None

    @property
    def apart(self) -> bool:
        """Whether it can be told apart from the best."""
        return self.p_value is not None and self.p_value < ALPHA


@dataclass(frozen=True)
class Ranking:
    """All methods, the best first; those that are not ranked come last.

    Attributes:
        masks: the masks that all ranked methods have; their means are over these.
        unit: what a mask is called, ``mask`` or ``split``.
    """

    places: tuple[Place, ...]
    masks: tuple[int, ...]
    unit: str

    @property
    def ranked(self) -> list[Place]:
        return [place for place in self.places if place.rank is not None]

    @property
    def level(self) -> list[Place]:
        """The methods that cannot be told apart from the best, itself included."""
        return [place for place in self.ranked if not place.apart]

    @property
    def tested(self) -> bool:
        """Whether the methods could be tested: on two masks, or on a single one with two seeds each."""
        return any(place.p_value is not None for place in self.ranked)


def rank(contenders: Sequence[Contender]) -> Ranking:
    """Rank methods by their means over the masks that most of them have."""
    masks = _usual_masks(contenders)
    means = {
        contender.name: fmean(contender.summary.mask_means[mask] for mask in masks)
        for contender in contenders
        if masks and contender.summary.by_mask.keys() >= set(masks)
    }
    ranked = [contender for contender in contenders if contender.name in means]
    # Among equal means, the cheaper method comes first.
    ranked.sort(key=lambda each: (-round(means[each.name], 9), each.seconds or 0.0, each.label))
    places = [_placed(each, ranked, means, masks) for each in ranked]
    others = [_unplaced(each) for each in contenders if each.name not in means]
    others.sort(key=lambda place: (-len(place.contender.summary.by_mask), place.contender.label))
    units = {contender.summary.unit for contender in ranked}
    return Ranking((*places, *others), masks, "split" if units == {"split"} else "mask")


def _usual_masks(contenders: Iterable[Contender]) -> tuple[int, ...]:
    """The set of masks that most methods have trials on; the larger one if several are equally common."""
    counted = Counter(frozenset(contender.summary.by_mask) for contender in contenders)
    del counted[frozenset()]
    usual = max(
        counted, key=lambda masks: (counted[masks], len(masks), sorted(masks)), default=frozenset[int]()
    )
    return tuple(sorted(usual))


def _placed(
    contender: Contender, ranked: Sequence[Contender], means: dict[str, float], masks: Sequence[int]
) -> Place:
    mean, best = means[contender.name], ranked[0]
    above = sum(other > mean + ROUNDING for other in means.values())
    interval = mean_interval([contender.summary.by_mask[mask] for mask in masks])
    behind, comparisons = means[best.name] - mean, len(ranked) - 1
    lead = None
    if contender is not best:
        lead = _lead(best.summary, contender.summary, masks, 1 - ALPHA / comparisons)
    if lead is None:
        return Place(contender, above + 1, mean, interval, behind)
    # Accuracies come in steps, so all differences may be equal; that does not prove a spread of zero.
    margin = lead.interval if lead.interval.high - lead.interval.low > ROUNDING else None
    p_value = min(1.0, comparisons * lead.p_value)
    return Place(contender, above + 1, mean, interval, behind, margin, p_value)


def _lead(best: Summary, other: Summary, masks: Sequence[int], confidence: float) -> Average | None:
    """Points by which the best is ahead: paired on masks, or over the seeds of a single mask, which are not paired."""
    if len(masks) == 1:
        return welch(best.by_mask[masks[0]], other.by_mask[masks[0]], confidence)
    ours, theirs = best.mask_means, other.mask_means
    return average_over_cells([[ours[mask] - theirs[mask] for mask in masks]], confidence)


def _unplaced(contender: Contender) -> Place:
    groups = list(contender.summary.by_mask.values())
    return Place(contender, None, contender.summary.mean, mean_interval(groups) if groups else None)
