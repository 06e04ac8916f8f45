"""``pagnn-bench tables --metric``: values of newer records, empty entries for older ones."""

from __future__ import annotations

import json

import pytest

from pagnn_bench.analysis.frames import cells
from pagnn_bench.analysis.metrics import METRICS
from pagnn_bench.cli import main
from tests.analysis.tables.reading import tables
from tests.fabricate import PROVENANCE, make_cell, save_trials

TIMES = {"train_seconds": 1.0, "seed_epochs": 100}


def newer(store, method: str, f1: list[float], facts: dict[str, float]) -> None:
    """Two masks of two trials each with macro-F1 values (shares) and facts; those of the second mask are 0.1 more."""
    for mask in (0, 1):
        records = [
            {"seed": seed, "status": "ok", "test_acc": 0.5, "test_macro_f1": value + 0.1 * mask, "epochs": 9}
            for seed, value in enumerate(f1)
        ]
        own = {key: value + 0.1 * mask for key, value in facts.items()}
        store.save(make_cell(method), mask, records, {**TIMES, **own}, PROVENANCE)


@pytest.fixture
def mixed(store):
    newer(store, "mf", [0.2, 0.4], {"impute_rmse": 0.25, "impute_recall@10": 0.5})
    newer(store, "fp", [0.6, 0.8], {"impute_rmse": 0.45, "impute_recall@10": 0.7})
    save_trials(store, make_cell("pagnn_n"), lambda mask, seed: 70.0, range(2), range(2))
    return store


def line(text: str, label: str) -> list[str]:
    found = [row for row in text.splitlines() if row.startswith(f"| {label} ")]
    return [entry.strip() for entry in found[0].split("|")[2:-1]]


def test_a_score_of_trials(mixed, capsys):
    text = tables(mixed, capsys, "--metric", "macro_f1")
    assert line(text, "FP")[2] == "**75.00** ±7.07"
    assert line(text, "MF")[2].split() == ["35.00", "±7.07"]
    assert not any(line(text, "PaGNN-N"))  # trained before there was this metric
    assert "Macro-F1 on the test nodes in percent" in text
    assert "1 cell without this metric" in text
    assert "n = 4 trials on 2 masks" in text
    assert "paper" not in text.replace("protocol paper", "")


def test_a_score_of_masks_where_low_is_good(mixed, capsys):
    text = tables(mixed, capsys, "--metric", "rmse")
    assert line(text, "MF")[2] == "**0.300** ±0.071"
    assert line(text, "FP")[2].split() == ["0.500", "±0.071"]
    assert "n = 2 masks" in text
    assert line(tables(mixed, capsys, "--metric", "recall@10"), "MF")[2].split() == ["55.00", "±7.07"]


def test_records_of_a_metric(mixed, capsys):
    rows = json.loads(tables(mixed, capsys, "--metric", "macro_f1", "--format", "json"))
    assert {row["method"]: row["mean"] for row in rows} == {"mf": 35.0, "fp": 75.0, "pagnn_n": None}
    assert all(row["metric"] == "macro_f1" and row["paper"] is None for row in rows)
    frame = cells(mixed.cells_dir.parent, metric="rmse").set_index("method")
    assert frame["mean"]["mf"] == pytest.approx(0.3)
    assert "metric" not in cells(mixed.cells_dir.parent)


def test_accuracy_is_what_is_shown_without_it(mixed, capsys):
    assert tables(mixed, capsys) == tables(mixed, capsys, "--metric", "accuracy")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--metric", "f1"], f"--metric f1: choose one of {', '.join(METRICS)}."),
        (["--metric", "rmse", "--compare", "paper"], "only accuracies were published"),
        (["--metric", "rmse", "--table", "timing"], "leave out --table timing"),
    ],
)
def test_a_wrong_request_is_one_sentence(arguments, words, capsys):
    assert main(["tables", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert len(error.strip().splitlines()) == 1


def test_a_run_records_them(tmp_path, capsys):
    run = ["data=synthetic", "missing=type2", "protocol=quick", "masks=1", "seeds=2", "threads=1"]
    assert main(["run", "-m", "method=mf,pagnn_n", *run, f"results_dir={tmp_path}", "n_jobs=1"]) == 0
    capsys.readouterr()
    results = ["tables", "--results", str(tmp_path), "--protocol", "quick"]
    for metric, both in {
        "macro_f1": True,
        "balanced_acc": True,
        "recall@20": False,
        "ndcg@50": False,
    }.items():
        assert main([*results, "--metric", metric, "--format", "json"]) == 0
        means = {row["method"]: row["mean"] for row in json.loads(capsys.readouterr().out)}
        assert 0 < means["mf"] <= 100
        assert (means["pagnn_n"] is not None) == both  # it fills nothing in
