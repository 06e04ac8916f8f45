"""The time of experiments, worked out by hand from results that nobody trained."""

from __future__ import annotations

import pytest

from pagnn_bench.analysis.tables.render import to_markdown
from pagnn_bench.bench.document import load_document, new_document, save_document
from pagnn_bench.bench.extrapolate import estimate, read_known
from pagnn_bench.bench.layout import make_table
from pagnn_bench.bench.speed import OURS
from pagnn_bench.cli import main
from pagnn_bench.engine.plan import Request
from pagnn_bench.records.store import Store
from tests.bench.common import MACHINE, make_row, speed_document
from tests.fabricate import PROVENANCE, make_cell, save_trials

TRIALS = frozenset((mask, seed) for mask in range(5) for seed in range(20))


@pytest.fixture
def store(tmp_path) -> Store:
    """Cora, type 1, rate 0.5: two masks with four seeds of 300 epochs each."""
    store = Store(tmp_path)
    cell = make_cell("pagnn_n", "cora", "type1", 0.5)
    for mask in (0, 1):
        records = [{"seed": seed, "status": "ok", "test_acc": 0.8, "epochs": 300} for seed in range(4)]
        facts = {"stack": 4, "train_seconds": 1.8, "eval_seconds": 0.6, "prepare_seconds": 0.5 + mask}
        store.save(cell, mask, records, {**facts, "seed_epochs": 1200}, PROVENANCE)
    return store


def seconds(store: Store, *place, rows=(), method="pagnn_n") -> tuple[float | None, str | None]:
    request = Request(make_cell(method, *place), TRIALS)
    [entry] = estimate("mine", [request], read_known(store), rows)
    return entry["seconds"], entry["from"]


def test_a_measured_cell(store):
    [known] = read_known(store)
    assert (known.epochs, known.seed_epoch_ms, known.prepare_seconds) == (300, pytest.approx(2.0), 1.0)
    # 5 masks x 1 s + 100 trials x 300 epochs x 2 ms
    assert seconds(store, "cora", "type1", 0.5) == (pytest.approx(65.0), "measured")


def test_the_nearest_cell_stands_in(store):
    assert seconds(store, "cora", "type1", 0.9) == (pytest.approx(65.0), "another rate")
    assert seconds(store, "cora", "type2", 0.5) == (pytest.approx(65.0), "another type")
    assert seconds(store, "citeseer", "type1", 0.5) == (None, None)
    assert seconds(store, "cora", "type1", 0.5, method="mf") == (None, None)
    save_trials(store, make_cell("pagnn_n", "cora", "type1", 0.7), lambda *_: 70.0, epochs=100)
    assert seconds(store, "cora", "type1", 0.9)[0] != pytest.approx(65.0)  # 0.7 is nearer than 0.5


def test_another_protocol_tells_nothing(store):
    save_trials(store, make_cell("mf", "cora", "type1", 0.5, protocol="quick"), lambda *_: 70.0)
    assert seconds(store, "cora", "type1", 0.5, method="mf") == (None, None)


def test_a_batch_beside_something_else_does_not_count_much(store):
    cell = make_cell("pagnn_n", "cora", "type1", 0.5)
    records = [{"seed": 0, "status": "ok", "test_acc": 0.8, "epochs": 300}]
    facts = {
        "stack": 1,
        "train_seconds": 90.0,
        "eval_seconds": 0.0,
        "prepare_seconds": 1.0,
        "seed_epochs": 300,
    }
    store.save(cell, 2, records, facts, PROVENANCE)
    assert read_known(store)[0].seed_epoch_ms == pytest.approx(2.0)


def test_the_speed_of_a_document_counts_instead(store):
    fast = [
        make_row(OURS, 1, [9.0]),
        make_row(OURS, 20, [0.5], prepare_seconds=2.0),
        make_row(OURS, 40, [0.1]),
    ]
    # 5 x 2 s + 100 x 300 x 0.5 ms: stacks of 20, as run trains
    assert seconds(store, "cora", "type1", 0.5, rows=fast) == (pytest.approx(25.0), "measured")
    assert seconds(store, "cora", "type2", 0.5, rows=fast) == (pytest.approx(65.0), "another type")


def test_a_method_known_from_a_document_only_trains_as_long_as_others(store):
    rows = [make_row(OURS, 20, [4.0], method="mf", prepare_seconds=0.0)]
    assert seconds(store, "cora", "type1", 0.5, rows=rows, method="mf") == (
        pytest.approx(120.0),
        "epochs of others",
    )
    rows = [make_row(OURS, 20, [4.0], method="mf", data="citeseer")]
    assert seconds(store, "citeseer", "type1", 0.5, rows=rows, method="mf") == (None, None)


def test_the_goal_for_cora():
    entry = {
        "method": "mf",
        "label": "MF",
        "data": "cora",
        "data_label": "Cora",
        "missing": "type1",
        "rate": 0.5,
    }
    entry |= {"masks": 5, "trials": 100, "threads": [2], "from": "measured"}
    for seconds_, verdict in ((1700.0, "met"), (1900.0, "not met"), (None, "open, 2 cells unknown")):
        document = new_document("plan", {}, MACHINE)
        document["entries"] = [
            {**entry, "experiment": name, "seconds": seconds_} for name in ("table2", "table3")
        ]
        assert f"goal at most 60 min: {verdict}." in to_markdown(make_table(document))


def test_the_command(store, capsys, tmp_path):
    save_document(speed_document(make_row(OURS, 20, [0.5])), tmp_path / "speed.json")
    words = [
        "--results",
        str(tmp_path),
        "--from",
        str(tmp_path / "speed.json"),
        "-o",
        str(tmp_path / "plan.json"),
    ]
    assert main(["bench", "--plan", "table2,table3", *words]) == 0
    table = capsys.readouterr().out
    assert "260 cells, 26000 trials" in table  # 7 + 6 methods, 4 datasets, 5 rates, 100 trials
    entries = load_document(tmp_path / "plan.json")["entries"]
    assert sum(entry["seconds"] is not None for entry in entries) == 10  # PaGNN-N on Cora, both types
    assert main(["bench", "--show", str(tmp_path / "plan.json")]) == 0
    assert capsys.readouterr().out == table
    assert main(["bench", "--plan", "table2", "--from", str(tmp_path / "plan.json")]) == 2
    assert "is of kind plan" in capsys.readouterr().err
