"""Who is best, who is not told apart from it, and what is advised: by hand, on records that nobody trained."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from pagnn_bench.analysis.ranking import Comparison, Contender, rank
from pagnn_bench.analysis.ranking.advice import advise, choose, how_to_be_surer
from pagnn_bench.analysis.report.comparison import write_comparison
from pagnn_bench.analysis.tables.render import to_markdown
from pagnn_bench.records.batch import StoredBatch
from pagnn_bench.records.store import Trial
from tests.analysis.test_report import Checker, text_of
from tests.fabricate import PROVENANCE, make_cell

NUMBER = itertools.count()


def contender(
    name: str,
    by_mask: dict[int, list[float | None]] | list[float],
    seconds: float = 1.0,
    rmse: float | None = None,
    **facts,
) -> Contender:
    """A method with these accuracies in percent, mask by mask; None is a trial that failed."""
    if isinstance(by_mask, list):
        by_mask = {mask: [value] for mask, value in enumerate(by_mask)}
    trials, wanted = [], 0
    for mask, values in by_mask.items():
        records = [
            {"seed": seed, "status": "ok", "test_acc": value / 100, "epochs": 100}
            if value is not None
            else {"seed": seed, "status": "failed", "reason": "diverged"}
            for seed, value in enumerate(values)
        ]
        facts = {
            "prepare_seconds": seconds * len(values) / 2,
            "train_seconds": seconds * len(values) / 2,
            **facts,
        }
        facts |= {} if rmse is None else {"impute_rmse": rmse}
        path = Path(f"{next(NUMBER)}.json")
        batch = StoredBatch(path, mask, 0, {**facts, "seed_epochs": 1}, PROVENANCE, records)
        trials += [Trial(record, batch) for record in records]
        wanted += len(values)
    return Contender(name, name.upper(), tuple(trials), wanted)


BEST = [80.0, 82.0, 81.0, 83.0, 79.0]
NEAR = [79.7, 81.9, 81.1, 82.5, 78.8]  # differences 0.3, 0.1, -0.1, 0.5, 0.2
FAR = [75.0, 77.3, 75.8, 78.1, 73.8]


def test_means_and_tests_by_hand():
    ranking = rank([contender("far", FAR), contender("near", NEAR), contender("best", BEST)])
    assert [place.contender.name for place in ranking.places] == ["best", "near", "far"]
    assert [place.rank for place in ranking.places] == [1, 2, 3]
    best, near, far = ranking.places
    # Mean 81, deviation sqrt(2.5), t(4, 0.975) = 2.776445.
    assert best.mean == pytest.approx(81)
    assert best.interval.high - 81 == pytest.approx(2.776445 * (2.5 / 5) ** 0.5, rel=1e-6)
    assert (best.behind, best.p_value) == (0, None)
    # Mean difference 0.2, variance 0.05, so t = 0.2 / sqrt(0.05 / 5) = 2 on 4 degrees: p = 0.1161; two tests.
    assert near.behind == pytest.approx(0.2)
    assert near.p_value == pytest.approx(2 * 0.116117, rel=1e-5)
    # The interval is at 97.5 %: t(4, 0.9875) = 3.495406.
    assert (near.margin.low, near.margin.high) == pytest.approx((0.2 - 0.3495406, 0.2 + 0.3495406), rel=1e-5)
    assert far.p_value == pytest.approx(2 * stats.ttest_rel(BEST, FAR).pvalue)
    assert ranking.level == [best, near]
    assert (near.apart, far.apart) == (False, True)


def test_a_lead_that_a_single_test_would_find_is_not_one_of_many():
    """p = 0.0163 against the best: beyond chance for a method named beforehand, not among ten."""
    close = [b - d for b, d in zip(BEST, [0.5, 0.9, 0.1, 0.7, 0.5])]
    alone = rank([contender("best", BEST), contender("close", close)])
    assert alone.places[1].p_value == pytest.approx(stats.ttest_rel(BEST, close).pvalue)
    assert alone.places[1].apart
    crowd = [contender(f"far{k}", [value - 0.01 * k for value in FAR]) for k in range(8)]
    among = rank([contender("best", BEST), contender("close", close), *crowd])
    assert among.places[1].p_value == pytest.approx(9 * alone.places[1].p_value)
    assert [place.contender.name for place in among.level] == ["best", "close"]


def test_the_confidence_set_holds_the_best_as_often_as_promised():
    """Twelve methods that are all equally good: the first is dropped in at most 5 % of the draws."""
    rng, methods, dropped, draws = np.random.default_rng(0), 12, 0, 200
    for _ in range(draws):
        values = 80 + rng.normal(0, 1, (1, 5)) + rng.normal(0, 0.5, (methods, 5))
        ranking = rank([contender(f"m{k}", list(row)) for k, row in enumerate(values)])
        dropped += all(place.contender.name != "m0" for place in ranking.level)
    assert dropped <= 0.05 * draws


def test_equal_means_share_a_rank_and_the_cheaper_comes_first():
    ranking = rank([contender("slow", BEST, 5.0), contender("fast", BEST, 1.0), contender("near", NEAR)])
    assert [(place.contender.name, place.rank) for place in ranking.places] == [
        ("fast", 1),
        ("slow", 1),
        ("near", 3),
    ]
    assert ranking.places[1].p_value == 1
    assert choose(ranking) is ranking.places[0]


def test_seeds_are_averaged_before_masks_are_compared():
    """A mask with many seeds weighs no more than one with few."""
    many = contender("many", {0: [70.0] * 9, 1: [80.0]})
    few = contender("few", {0: [70.0], 1: [79.0]})
    ranking = rank([many, few])
    assert [place.mean for place in ranking.places] == pytest.approx([75, 74.5])


def test_a_method_with_fewer_masks_is_shown_but_not_ranked():
    short = contender("short", {0: [99.0], 1: [99.0]})
    ranking = rank([short, contender("best", BEST), contender("far", FAR)])
    assert [(place.contender.name, place.rank) for place in ranking.places] == [
        ("best", 1),
        ("far", 2),
        ("short", None),
    ]
    assert ranking.masks == (0, 1, 2, 3, 4)
    assert ranking.places[1].p_value == pytest.approx(
        stats.ttest_rel(BEST, FAR).pvalue
    )  # one comparison, not two
    assert "not ranked: 2 of 5 masks" in markdown(short, contender("best", BEST), contender("far", FAR))


def test_failed_trials_are_left_out_of_means_and_counted():
    shaky = contender("shaky", {mask: [value, None] for mask, value in enumerate(BEST)})
    gone = contender("gone", {mask: [None] for mask in range(5)})
    near, far = contender("near", NEAR), contender("far", FAR)
    ranking = rank([shaky, gone, near, far])
    assert [(place.contender.name, place.rank) for place in ranking.places] == [
        ("shaky", 1),
        ("near", 2),
        ("far", 3),
        ("gone", None),
    ]
    assert ranking.places[0].mean == pytest.approx(81)
    # A sound method that is as good is preferred to one that fails half of the time.
    assert choose(ranking).contender is near
    assert advise(ranking).startswith(
        "Use NEAR, 0.20 points behind SHAKY, which has the highest mean, 81.00 %, but failed in 5 of 10 trials; "
    )
    text = markdown(shaky, gone, near, far)
    assert "5 of 10 trials failed" in text
    assert "5 of 5 trials failed" in text


def test_a_single_mask_is_tested_over_seeds():
    ours, theirs = [80.0, 80.4, 80.2], [78.0, 78.1, 77.4]
    ranking = rank([contender("a", {3: ours}), contender("b", {3: theirs})])
    second = ranking.places[1]
    welch = stats.ttest_ind(ours, theirs, equal_var=False)
    assert second.p_value == pytest.approx(welch.pvalue)
    interval = welch.confidence_interval(0.95)
    assert (second.margin.low, second.margin.high) == pytest.approx(tuple(interval))
    assert "the seeds on a single mask tell it apart" in advise(ranking)


def test_one_trial_each_decides_nothing():
    ranking = rank([contender("a", [80.0]), contender("b", [60.0])])
    assert not ranking.tested
    assert (
        "A has the highest accuracy of 2 methods, 80.00 %, but the seeds on a single mask cannot tell"
        in advise(ranking)
    )


def test_one_method_only():
    ranking = rank([contender("a", BEST)])
    assert advise(ranking) == (
        "Only A can be judged, at 81.00 %: no other method was run, so there is nothing to compare it with."
    )
    broken = contender("b", [None]), contender("c", [None])
    assert "at 81.00 %: the other cannot be ranked, so" in advise(rank([contender("a", BEST), broken[0]]))
    assert "at 81.00 %: none of the other 2 can be ranked, so" in advise(
        rank([contender("a", BEST), *broken])
    )
    assert advise(rank([contender("a", [None])])).startswith("No method has a finished trial")


def test_the_sentence_says_how_many_were_compared():
    ranking = rank(
        [contender("best", BEST), contender("far", FAR), contender("worst", [60.0, 61, 60.5, 62, 59])]
    )
    assert advise(ranking) == (
        "Use BEST: it has the highest mean of 3 methods, 81.00 %, and 5 masks tell it apart from each of the other 2 "
        "(5 % over all comparisons together)."
    )
    assert how_to_be_surer(ranking) == ""


def test_a_much_cheaper_method_that_is_close_is_advised():
    best, far = contender("best", BEST, 10.0), contender("far", FAR, 0.1)
    assert choose(rank([best, contender("near", NEAR, 6.0), far])).contender is best
    ranking = rank([best, contender("near", NEAR, 2.0), far])
    assert choose(ranking).contender.name == "near"
    assert advise(ranking) == (
        "Use NEAR, 0.20 points behind BEST, which has the highest mean, 81.00 %, and 5 times as fast; but 5 masks do "
        "not tell 2 of the 3 methods apart (BEST, NEAR), and with 95 % confidence the best is one of these."
    )
    assert how_to_be_surer(ranking) == "To be surer: masks=10, which trains the 5 further masks only."
    # Not told apart, since it varies so much, but 2 points behind: that may well be a difference.
    wild = contender("wild", [70.0, 90, 70, 90, 75], 0.1)
    ranking = rank([best, wild])
    assert not ranking.places[1].apart
    assert choose(ranking).contender is best


def markdown(*contenders: Contender) -> str:
    return to_markdown(Comparison(make_cell(), contenders).table())


def test_the_table_and_the_page_say_the_same(tmp_path):
    contenders = (
        contender("best", BEST, rmse=0.5, own_split=True, missing_share=0.4),
        contender("near", NEAR, own_split=True),
        contender("far", FAR, own_split=True),
    )
    left_out = {"full": "sees <what> is hidden"}
    comparison = Comparison(make_cell(), contenders, left_out, ("Settings: as they are.",))
    table = to_markdown(comparison.table())
    assert "Cora, type1, rate 0.5 (40 % of the attributes missing)" in table
    assert "mean of the test accuracy over 5 splits" in table
    write_comparison(comparison, tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    assert all(address.startswith(("data:", "#")) for address in checker.addresses)
    text = text_of(html)
    assert comparison.sentence in text
    assert "full (sees &lt;what&gt; is hidden)" in text
    assert html.count('data-tip="') == 6  # three methods in two figures
    for record in comparison.records():
        assert f"{record['mean']:.2f}" in table
        assert f"{record['mean']:.2f}" in text
    frame = comparison.frame()
    assert frame.set_index("method").impute_rmse["best"] == 0.5
    assert list(frame["rank"]) == [1, 2, 3]
