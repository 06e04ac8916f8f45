"""Settings that differ never meet in one entry."""

from __future__ import annotations

from pagnn_bench.analysis.tables.results import load_results
from pagnn_bench.cli import main
from tests.analysis.tables.reading import fill, records, tables
from tests.fabricate import make_cell, save_trials


def test_settings_that_differ_never_meet_in_one_entry(store, capsys):
    fill(store, value=70.0)
    fill(store, value=60.0, method_={"hidden": 32})
    fill(store, value=50.0, data_={"split": "random"})
    fill(store, value=40.0, protocol_={"lr": 0.1})
    fill(store, value=30.0, protocol="quick")
    fill(store, value=20.0, missing_={"exact": True})
    named = {
        tuple(record[key] for key in ("method", "data", "missing", "protocol")): record["mean"]
        for record in records(store, capsys)
        if record["mean"] is not None
    }
    assert named == {
        ("pagnn_n", "cora", "type1", "paper"): 70.75,
        ("pagnn_n[hidden=32]", "cora", "type1", "paper"): 60.75,
        ("pagnn_n", "cora[split=random]", "type1", "paper"): 50.75,
        ("pagnn_n", "cora", "type1", "paper[lr=0.1]"): 40.75,
        ("pagnn_n", "cora", "type1", "quick"): 30.75,
        ("pagnn_n", "cora", "type1[exact=true]", "paper"): 20.75,
    }


def test_defaults_that_depend_on_the_data_are_defaults(store, capsys):
    fill(store, data="amaphoto", method_={"hidden": 64})
    fill(store, data="mine", data_={"recommended": {"hidden": 8, "weight_decay": 0.1}}, method_={"hidden": 8})
    assert [r["method"] for r in records(store, capsys) if r["mean"] is not None] == ["pagnn_n", "pagnn_n"]


def test_what_a_packaged_dataset_does_not_recommend_is_no_default(store, capsys):
    fill(store, value=70.0)
    fill(store, value=60.0, data_={"recommended": {"hidden": 2, "weight_decay": 0.0005}})
    found = {(r["method"], r["protocol"]): r["mean"] for r in records(store, capsys) if r["mean"] is not None}
    other = ("pagnn_n[hidden=2]", "paper[weight_decay=0.0005]")
    assert found == {("pagnn_n", "paper"): 70.75, other: 60.75}


def test_a_protocol_of_one_s_own_names_the_settings_that_vary_and_no_others(store):
    """A grid has no usual setting; what it has on one dataset only is a setting there, too."""
    grid = {"cora": [(0.01, "none"), (0.02, "none"), (0.01, "row")], "amacomp": [(0.01, "none")]}
    for data, settings in grid.items():
        for decay, norm in settings:
            changed = {"weight_decay": decay, "feature_norm": norm}
            save_trials(store, make_cell(data=data, protocol="grid", protocol_=changed), lambda m, s: 70.0)
        save_trials(store, make_cell(data=data, protocol="timing"), lambda mask, seed: 70.0)
    names = {(r.key.data, r.key.protocol) for r in load_results(store).all}
    assert names == {
        ("cora", "grid[feature_norm=none,weight_decay=0.01]"),
        ("cora", "grid[feature_norm=none,weight_decay=0.02]"),
        ("cora", "grid[feature_norm=row,weight_decay=0.01]"),
        ("amacomp", "grid[feature_norm=none,weight_decay=0.01]"),
        ("cora", "timing"),
        ("amacomp", "timing"),
    }


def test_unknown_methods_have_their_most_common_settings_as_default(store, capsys):
    for rate in (0.1, 0.5):
        fill(store, "mine", 60.0, rate=rate, method_={"depth": 2})
    fill(store, "mine", 50.0, method_={"depth": 3})
    found = {(r["method"], r["rate"]) for r in records(store, capsys) if r["mean"] is not None}
    assert found == {("mine", 0.1), ("mine", 0.5), ("mine[depth=3]", 0.5)}


def test_one_protocol_at_a_time_and_the_others_are_named(store, capsys):
    fill(store, value=70.0)
    fill(store, value=30.0, protocol="quick")
    text = tables(store, capsys)
    assert "70.75" in text
    assert "30.75" not in text
    assert "1 cell under protocol quick" in text
    assert "30.75" in tables(store, capsys, "--protocol", "quick")
    assert main(["tables", "--results", str(store.cells_dir.parent), "--protocol", "none"]) == 2
    assert "choose one of paper, quick" in capsys.readouterr().err


def test_a_mapping_that_is_not_there_is_named_once(store):
    """GCNmf as published has a search of eight keys; without it, it is not eight settings that differ."""
    for tuning in ({"tuning": None}, {}):
        save_trials(store, make_cell("gcnmf", protocol_=tuning), lambda mask, seed: 70.0)
    names = {result.key.protocol for result in load_results(store).all}
    assert names == {"paper", "paper[tuning=unset]"}
