"""The numbers of an entry, its interval and its verdict, in the flat forms of ``pagnn-bench tables``."""

from __future__ import annotations

import csv
import io

import pytest
from scipy import stats as scipy_stats

from pagnn_bench.analysis.tables.results import DIFFERS, INSIDE, TOLERATED, TOO_FEW, tolerance
from tests.analysis.tables.reading import fill, records, tables
from tests.fabricate import like_the_paper, make_cell, save_trials

KEYS = [
    *("method", "data", "missing", "rate", "protocol"),
    *("mean", "std", "std_seeds", "ci_low", "ci_high", "ci_over", "n_trials", "n_masks"),
    *("paper", "difference", "verdict", "epochs", "seconds_per_epoch"),
]


def test_json_has_every_entry_of_the_paper_and_the_keys_promised(store, capsys):
    fill(store, "zero", 70.0)
    found = records(store, capsys)
    assert all(list(record) == KEYS for record in found)
    assert sum(record["paper"] is not None for record in found) == 260
    assert [record["method"] for record in found if record["mean"] is not None] == ["zero"]


def test_the_numbers_of_a_record(store, capsys):
    fill(store, "pagnn_n", 77.0)  # trials 77, 77.5 and 78, 78.5: mask means 77.25 and 78.25
    record = next(record for record in records(store, capsys, "--table", "2") if record["mean"] is not None)
    half = scipy_stats.t.ppf(0.975, 1) * 0.5
    assert record["mean"] == 77.75
    assert record["std"] == pytest.approx(0.5**0.5, abs=1e-4)
    assert record["std_seeds"] == pytest.approx(0.5 * 0.5**0.5, abs=1e-4)
    assert (record["ci_low"], record["ci_high"]) == pytest.approx((77.75 - half, 77.75 + half), abs=1e-4)
    assert (record["ci_over"], record["n_trials"], record["n_masks"], record["epochs"]) == (
        "masks",
        4,
        2,
        300,
    )
    assert (record["paper"], record["difference"], record["verdict"]) == (77.46, 0.29, TOLERATED)
    assert record["seconds_per_epoch"] == pytest.approx(0.0046 * 1.01)


def test_csv_holds_the_same(store, capsys):
    fill(store)
    rows = list(csv.DictReader(io.StringIO(tables(store, capsys, "--format", "csv"))))
    flat = [
        {key: "" if value is None else str(value) for key, value in record.items()}
        for record in records(store, capsys)
    ]
    assert rows == flat


def test_the_interval_of_a_single_mask_says_that_it_covers_seeds_only(store, capsys):
    save_trials(store, make_cell(), lambda mask, seed: 77.0 + seed, masks=[0], seeds=[0, 1])
    record = next(record for record in records(store, capsys) if record["mean"] is not None)
    assert record["ci_low"] < record["ci_high"]
    assert record["ci_over"] == "seeds"


def test_masks_count_alike_however_many_seeds_they_have(store, capsys):
    save_trials(store, make_cell(), lambda mask, seed: 70.0, masks=[0], seeds=range(20))
    save_trials(store, make_cell(), lambda mask, seed: 80.0, masks=[1], seeds=[0])
    record = next(record for record in records(store, capsys) if record["mean"] is not None)
    assert record["mean"] == 75.0


def test_a_single_trial_has_no_interval(store, capsys):
    save_trials(store, make_cell(), lambda mask, seed: 77.5, masks=[0], seeds=[0])
    record = next(record for record in records(store, capsys) if record["mean"] is not None)
    assert (record["std"], record["ci_low"], record["ci_high"]) == (None, None, None)
    assert record["verdict"] == TOO_FEW


@pytest.mark.parametrize(
    ("rate", "shift", "verdict"),
    [
        (0.5, 0.4, TOLERATED),
        (0.5, 0.6, DIFFERS),
        (0.7, 0.9, TOLERATED),
        (0.9, 2.4, TOLERATED),
        (0.9, 2.6, DIFFERS),
    ],
)
def test_tolerance_grows_with_the_rate(store, capsys, rate, shift, verdict):
    cell = make_cell(rate=rate)
    save_trials(store, cell, like_the_paper(cell, shift, spread=0.0), masks=[0, 1], seeds=[0])
    record = next(record for record in records(store, capsys) if record["mean"] is not None)
    assert record["verdict"] == verdict
    assert abs(shift) <= tolerance(rate) or verdict == DIFFERS


@pytest.mark.parametrize("seeds", [1, 5])
@pytest.mark.parametrize(("shift", "verdict"), [(0.0, TOO_FEW), (-1.9, TOO_FEW), (-2.1, DIFFERS)])
def test_a_single_mask_differs_only_if_it_is_far_off(store, capsys, shift, verdict, seeds):
    cell = make_cell(rate=0.5)
    save_trials(store, cell, like_the_paper(cell, shift, spread=0.0), masks=[0], seeds=range(seeds))
    record = next(record for record in records(store, capsys) if record["mean"] is not None)
    assert record["verdict"] == verdict


@pytest.mark.parametrize(
    ("masks", "spread", "verdict"),
    [
        (2, 0.05, DIFFERS),  # mask means 0.7 ± 0.05 off: half an interval is 0.64
        (2, 0.07, INSIDE),  # 0.89
        (2, 0.5, TOO_FEW),  # 6.4
        (40, 0.5, DIFFERS),  # the same spread on many masks
    ],
)
def test_an_interval_that_holds_anything_agrees_with_nothing(store, capsys, masks, spread, verdict):
    cell = make_cell(rate=0.5)  # 77.46 in the paper
    save_trials(store, cell, lambda mask, seed: 78.16 + spread * (-1) ** mask, masks=range(masks), seeds=[0])
    record = next(record for record in records(store, capsys) if record["mean"] is not None)
    assert record["verdict"] == verdict
