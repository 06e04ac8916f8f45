"""How far PaGNN-N is ahead, protocol by protocol: paired on common masks, and honest about what was not run."""

from __future__ import annotations

import pytest

from pagnn_bench.analysis.paper import paper_entries
from pagnn_bench.analysis.tables.leads import leads_table
from pagnn_bench.analysis.tables.results import load_results
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.sweep import compose_combinations
from pagnn_bench.records.store import Store


def record(store: Store, words: list[str], accuracies: dict[int, float]) -> None:
    """One trial per mask."""
    [config] = compose_combinations(words)
    cell = Cell.from_config(config)
    for mask, accuracy in accuracies.items():
        trial = {"seed": 0, "status": "ok", "test_acc": accuracy, "val_acc": 0.5, "epochs": 3}
        store.save(cell, mask, [trial], {}, {})


@pytest.fixture
def rows(tmp_path) -> dict[tuple[str, str], list[str]]:
    store = Store(tmp_path)
    for missing, lead in (("type1", 0.02), ("type2", 0.04)):
        for data in ("cora", "citeseer"):
            place = ["rate=0.9", f"data={data}", f"missing={missing}", "protocol=shared"]
            # A third mask that only one of the two has does not count.
            record(store, [*place, "method=pagnn_n"], {0: 0.5 + lead, 1: 0.6 + lead, 2: 0.9})
            record(store, [*place, "method=mf"], {0: 0.5, 1: 0.6})
    place = ["rate=0.9", "data=cora", "missing=type1", "protocol=paper"]
    record(store, [*place, "method=pagnn_n"], {0: 0.5, 1: 0.5})
    record(store, [*place, "method=mf"], {0: 0.51, 1: 0.51})
    table = leads_table(load_results(store))
    assert table is not None
    [part] = table.parts
    found, name = {}, ""
    for row in part.rows:
        name = row[0].text or name
        found[name, row[1].text] = [f"{value.text} {value.small}".strip() for value in row[2:]]
    return found


def test_leads_are_means_over_cells_of_paired_differences(rows):
    assert rows["MF", "one setting for all"] == ["", "", "", "", "+3.0"]


def test_an_entry_says_how_many_of_its_cells_were_run(rows):
    assert rows["MF", "as published"] == ["", "", "", "", "-1.0 (1 of 4)"]


def test_the_paper_s_own_lead_stands_above(rows):
    entries = paper_entries()
    places = [(missing, data) for missing in ("type1", "type2") for data in ("cora", "citeseer")]
    printed = [
        entries[missing, data, "pagnn_n", 0.9].accuracy - entries[missing, data, "mf", 0.9].accuracy
        for missing, data in places
    ]
    assert rows["MF", "the paper's numbers"][-1] == f"{sum(printed) / 4:+.1f}"


def test_a_rival_that_was_not_run_has_no_row(rows):
    assert {name for name, _ in rows} == {"MF"}


def test_nothing_run_gives_no_table(tmp_path):
    assert leads_table(load_results(Store(tmp_path))) is None
