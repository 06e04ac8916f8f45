"""Published numbers beside ours: which stand beside which protocol, and what tables say of them."""

from __future__ import annotations

import csv
from importlib.resources import files

import pytest

from pagnn_bench.analysis.paper import paper_entries
from pagnn_bench.analysis.published import SOURCES, published, published_under
from pagnn_bench.analysis.summary import describe
from pagnn_bench.analysis.tables.results import DIFFERS, INSIDE, load_results
from pagnn_bench.cli import main
from pagnn_bench.config.variants import _file
from pagnn_bench.records.store import Store
from tests.analysis.tables.reading import records, tables
from tests.fabricate import make_cell, save_trials

EXTREME = {"protocol": "extreme", "missing": "type2", "rate": 0.995}


@pytest.fixture
def store(tmp_path) -> Store:
    """FP near its published 78.36, zero filling ten points above its 63.37, and FISF, which has none; ten splits."""
    store = Store(tmp_path / "results")
    for method, mean in {"fp": 78.0, "zero": 73.0, "fisf": 79.0}.items():
        cell = make_cell(method, **EXTREME)
        save_trials(
            store, cell, lambda mask, seed, m=mean: m + (mask % 5) / 2 - 1, masks=range(10), seeds=[0]
        )
    return store


def test_every_row_has_a_source_and_a_label():
    text = files("pagnn_bench.analysis").joinpath("extreme.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert {row["source"] for row in rows} == SOURCES.keys()
    extreme = published()["extreme"]
    assert len(extreme.entries) == len(rows) == 73  # none twice
    for missing, data, method, rate in extreme.entries:
        assert missing in extreme.titles
        assert data in extreme.datasets
        assert rate in extreme.rates
        # As our own files call it, where there is one.
        assert extreme.methods[method] == _file("method", method).get("label", extreme.methods[method])
    fp = extreme.entry("type2", "cora", "fp", 0.995)
    assert (fp.accuracy, fp.spread) == (78.36, 1.76)


def test_each_protocol_has_its_own_numbers():
    assert published_under("extreme[lr=0.01]").name == "extreme"
    for protocol in ("paper", "tuned", "grid[weight_decay=0.05]", "mine"):
        assert published_under(protocol).entries == paper_entries()


def test_verdicts(store):
    found = {result.key.method: result for result in load_results(store).all}
    assert (found["fp"].paper, found["fp"].verdict) == (78.36, INSIDE)
    assert found["zero"].verdict == DIFFERS
    assert found["fisf"].paper is None


def test_the_papers_numbers_are_of_another_protocol(tmp_path):
    store = Store(tmp_path / "results")
    save_trials(store, make_cell("pagnn_n", protocol="extreme", rate=0.5), lambda mask, seed: 70.0)
    [result] = load_results(store).all
    assert result.paper is None
    assert "paper" not in describe(result.cell, result.trials)[0]


def test_the_closing_line_names_the_published_number(store):
    [result] = [result for result in load_results(store).all if result.key.method == "fp"]
    assert describe(result.cell, result.trials)[0].endswith("; published 78.36 (-0.36)")


def test_tables_beside_published_numbers(store, capsys):
    text = tables(store, capsys, "--compare", "extreme")
    lines = [[entry.strip() for entry in line.strip("| ").split("|")] for line in text.splitlines()]
    rows = {tuple(line[:2]): line[2] for line in lines if len(line) == 3}  # of methods not run, too
    assert rows["FP", "ours"].startswith("78.00")
    at = lines.index(next(line for line in lines if line[:2] == ["FP", "ours"]))
    assert lines[at + 1] == ["published", "78.36   ±1.76"]
    assert lines[at + 2] == ["difference", "-0.36   ="]
    assert rows["GRAFENNE", "published"].startswith("39.86")
    assert "Type 2, protocol extreme" in text
    assert "Table 3" not in text
    assert "0.1" not in {entry for line in lines for entry in line}  # no columns of the paper's rates
    assert "github.com/ssjcode/FSD-CAP" in text
    assert "1500 nodes 20 per class train" in text
    assert "in the setting of its own authors" not in text


def test_records_hold_what_was_not_run_too(store, capsys):
    [fp] = [
        r
        for r in records(store, capsys, "--compare", "extreme")
        if (r["method"], r["n_trials"]) == ("fp", 10)
    ]
    assert (fp["paper"], fp["verdict"]) == (78.36, INSIDE)
    absent = [r for r in records(store, capsys, "--compare", "extreme") if r["n_trials"] == 0]
    assert len(absent) == 73 - 2


def test_without_results_the_published_numbers_stand_alone(tmp_path, capsys):
    assert "81.49" in tables(Store(tmp_path), capsys, "--compare", "extreme")


def test_numbers_of_another_protocol_are_refused(store, capsys):
    folder = str(store.cells_dir.parent)
    assert main(["tables", "--results", folder, "--protocol", "extreme", "--compare", "paper"]) == 2
    assert "--compare extreme" in capsys.readouterr().err
    assert main(["tables", "--results", folder, "--compare", "paper"]) == 0  # the paper's own, beside nothing
    assert "protocol paper" in capsys.readouterr().out
