"""Seconds per epoch, and their table."""

from __future__ import annotations

import pytest

from pagnn_bench.analysis.tables.layout import three_digits
from pagnn_bench.analysis.tables.results import load_results
from pagnn_bench.analysis.tables.timing import read_timings
from tests.analysis.tables.reading import fill, records, tables
from tests.fabricate import ON_GPU, make_cell, save_trials


def test_timing_takes_lone_trials_and_adds_the_preparation_of_every_method(store, capsys):
    for method in ("mf", "pagnn_n"):
        save_trials(store, make_cell(method, protocol="timing"), lambda m, s: 70.0, [0], range(3), stack=1)
        save_trials(store, make_cell(method), lambda m, s: 70.0, [0], range(3), stack=3)
    results = load_results(store)
    timings = read_timings(results)
    assert timings.protocol == "timing"
    mf, pagnn = timings.all
    # 300 epochs at 4.0, 4.08, 4.16 ms; preparation takes 0.3 s = 1 ms per epoch.
    assert mf.repeats == pytest.approx((5.0, 5.08, 5.16))
    assert (mf.median, mf.prepare_share) == (pytest.approx(5.08), pytest.approx(1 / 5.08))
    assert pagnn.repeats == pytest.approx((5.6, 5.692, 5.784))
    assert pagnn.quartiles == pytest.approx((5.646, 5.738))
    record = records(store, capsys, "--table", "timing")[1]
    assert (record["method"], record["repeats"]) == ("pagnn_n", 3)
    assert record["ratio_to_mf"] == pytest.approx(5.692 / 5.08, abs=1e-4)
    shown = tables(store, capsys, "--table", "timing")
    assert "5.08 5.04–5.12" in shown
    assert "Measured on: cpu, 1 thread." in shown


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.99444, "0.994"), (25.46, "25.5"), (99.96, "100"), (1184.0, "1180"), (20499.0, "20500")],
)
def test_three_digits_without_an_exponent(value, text):
    assert three_digits(value) == text


def test_stacked_trials_give_no_timing(store, capsys):
    fill(store)
    assert read_timings(load_results(store)).protocol is None
    assert "experiment=timing" in tables(store, capsys, "--table", "timing")


def test_a_gpu_is_named(store, capsys):
    save_trials(
        store,
        make_cell("mf", protocol="timing"),
        lambda m, s: 70.0,
        [0],
        range(2),
        stack=1,
        provenance=ON_GPU,
    )
    assert "Measured on: NVIDIA T4." in tables(store, capsys, "--table", "timing")
