"""bfloat16 against float32: which trials make a pair, and their mean difference."""

from __future__ import annotations

from pagnn_bench.analysis.tables.precision import precision_table
from pagnn_bench.analysis.tables.results import load_results
from pagnn_bench.records.store import Store
from tests.fabricate import make_cell, save_trials

NARROW = {"precision": "bfloat16"}


def test_no_pairs_no_table(tmp_path):
    store = Store(tmp_path)
    save_trials(store, make_cell("mf", "amaphoto"), lambda mask, seed: 80.0)
    save_trials(store, make_cell("mf", "amaphoto", rate=0.9, protocol_=NARROW), lambda mask, seed: 80.0)
    save_trials(
        store, make_cell("mf", "amaphoto", protocol="shared", protocol_=NARROW), lambda mask, seed: 80.0
    )
    assert precision_table(load_results(store)) is None


def test_only_trials_of_the_same_mask_and_seed_are_compared(tmp_path):
    """float32 has five masks of four seeds, bfloat16 two masks of two: four pairs, whose masks differ by 1 and 3."""
    store = Store(tmp_path)
    save_trials(store, make_cell("mf", "amaphoto"), lambda mask, seed: 70.0 + mask + 5 * seed)
    narrow = make_cell("mf", "amaphoto", protocol_=NARROW)
    save_trials(
        store,
        narrow,
        lambda mask, seed: 71.0 + 3 * mask + 5 * seed + (-1) ** seed,
        masks=[0, 1],
        seeds=[1, 2],
    )
    table = precision_table(load_results(store))
    ((*names, value),) = table.parts[0].rows
    assert [name.text for name in names] == ["AmaPhoto", "Type 1", "MF"]
    assert value.text == "+2.00"
    # t with one degree of freedom: 12.706 standard errors of 1.
    assert value.small == "(-10.7 to +14.7; 4)"
    assert table.parts[0].header[-1] == "0.5"


def test_one_pair_has_no_interval(tmp_path):
    store = Store(tmp_path)
    for changes, accuracy in (({}, 80.0), ({"protocol_": NARROW}, 79.5)):
        cell = make_cell("sat", "amacomp", rate=0.9, **changes)
        save_trials(store, cell, lambda mask, seed, value=accuracy: value, masks=[0], seeds=[0])
    value = precision_table(load_results(store)).parts[0].rows[0][-1]
    assert (value.text, value.small) == ("-0.50", "(1)")
