"""The measured parts of docs/field.md, from fabricated results and a fabricated audit."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pagnn_bench.analysis.tables.results import load_results
from pagnn_bench.records.store import Store
from tests.fabricate import make_cell, save_trials

ROOT = Path(__file__).parent.parent


@pytest.fixture
def field(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import field_parts

    return field_parts


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "results")


def fill(store: Store, method: str, value: float, **where) -> None:
    save_trials(store, make_cell(method, **where), lambda mask, seed: value + mask / 10, seeds=range(2))


def written(field, store: Store) -> dict[str, str]:
    results = load_results(store)
    return {name: part(results) for name, part in field.FIELD_PARTS.items()}


def test_the_page_has_every_part_once(field):
    page = (ROOT / "docs/field.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- measured: (\S+) -->", page)) == sorted(field.FIELD_PARTS)


def test_without_results_every_part_is_a_sentence(field, store, monkeypatch, tmp_path):
    monkeypatch.setattr(field, "AUDIT", tmp_path / "none.json")
    fill(store, "pagnn_n", 80.0)  # a cell of the paper is no result of this page
    for name, text in written(field, store).items():
        assert text.startswith("Nothing has been run here yet: `"), name
        assert "|" not in text


def test_parts_that_were_run(field, store, monkeypatch, tmp_path):
    monkeypatch.setattr(field, "AUDIT", tmp_path / "none.json")
    fill(store, "fp", 77.0, protocol="extreme", missing="type2", rate=0.995)
    for missing in ("type1", "class"):
        fill(store, "zero", {"type1": 60.0, "class": 51.0}[missing], missing=missing)
    fill(store, "fp", 43.0, data="counties", missing="type1", rate=0.9)
    parts = written(field, store)
    assert re.search(r"FP +\| ours +\|.* 77\.20 .*\n.*published +\|.* 78\.36 ", parts["extreme2"])
    assert parts["extreme_verdicts"].startswith("Published numbers that were also run here: 1 of ")
    assert "within the tolerance): 1; different: 0;" in parts["extreme_verdicts"]
    assert "Nothing has been run" in parts["extreme1"]
    assert re.search(r"By class +\| 0\.5 +\|.* -9\.0 ", parts["mechanism_costs"])
    assert "43.20" in parts["dense1"]
    assert "77.2" not in parts["dense1"]
    assert "Not run" not in parts["dense1"]  # Cora and the others have no place in this table
    assert "Nothing has been run" in parts["dense2"]


def test_fillings_are_ranked_behind_every_network(field, store, monkeypatch, tmp_path):
    monkeypatch.setattr(field, "AUDIT", tmp_path / "none.json")
    for method, network, value in (
        ("mf", "gcn", 70.0),
        ("fp", "gcn", 75.0),
        ("mf", "gat", 72.0),
        ("fp", "gat", 71.0),
    ):
        fill(store, method, value, protocol="backbones", method_={"network": network})
    fill(store, "fp", 60.0, protocol="backbones", rate=0.9, method_={"network": "sage"})
    lines = written(field, store)["backbones"].splitlines()
    assert lines[0] == "|  | gcn, 0.5 | gat, 0.5 | sage, 0.9 |"
    assert sorted(lines[2:4]) == [
        "| FP | 75.2 (1) | 71.2 (2) | 60.2 (1) |",
        "| MF | 70.2 (2) | 72.2 (1) |  |",
    ]


def trial(mask: int, seed: int, public: float, clean: float, **changed) -> dict:
    inputs = {"public": public, "clean": clean, "method": 60.0, "diffusion": 50.0}
    return {
        **{"cell": "one", "data": "citeseer", "missing": "type2", "rate": 0.995, "protocol": "extreme"},
        **{"mask": mask, "seed": seed, "settings": {"gamma": 0.7, "retain": 3.0}},
        "inputs": {name: {"test_acc": value / 100} for name, value in inputs.items()},
        **changed,
    }


def test_the_audit_pairs_its_inputs_on_every_split(field, store, monkeypatch, tmp_path):
    """Differences of 2, 3 and 4 points: t of 0.975 on two degrees of freedom is 4.303, and 4.303 / √3 is 2.48."""
    trials = [trial(mask, seed, 62 + mask + seed, 60 + seed) for mask in range(3) for seed in range(2)]
    other = {"cell": "two", "data": "cora", "settings": {"gamma": 0.7, "retain": 3.0}}
    changed = {"cell": "three", "settings": {"gamma": 0.9, "retain": 3.0}}
    trials += [trial(0, 0, 80, 71, **other), trial(0, 0, 55, 54, **changed)]
    monkeypatch.setattr(field, "AUDIT", tmp_path / "fsdcap.json")
    document = {"schema": 1, "kind": "audit of FSD-CAP", "trials": trials}
    field.AUDIT.write_text(json.dumps(document), encoding="utf-8")
    lines = written(field, store)["audit_fsdcap"].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert rows[0][1:7] == ["splits x seeds", "public", "clean", "method", "diffusion", "public - clean"]
    assert [row[0] for row in rows[2:]] == [
        "Cora, Type 2, rate 0.995",
        "Citeseer, Type 2, rate 0.995, gamma=0.7",
        "Citeseer, Type 2, rate 0.995, gamma=0.9",
    ]
    assert "Protocol extreme." in lines
    assert rows[2][6] == "+9.00"  # a single split has no interval
    assert rows[3][1:7] == ["3 x 2", "63.50", "60.50", "60.00", "50.00", "+3.00 [+0.52, +5.48]"]


def test_another_file_in_its_place_is_refused(field, store, monkeypatch, tmp_path):
    monkeypatch.setattr(field, "AUDIT", tmp_path / "fsdcap.json")
    field.AUDIT.write_text('{"kind": "timings", "trials": []}', encoding="utf-8")
    with pytest.raises(ValueError, match="expected an audit of FSD-CAP, found timings"):
        written(field, store)
