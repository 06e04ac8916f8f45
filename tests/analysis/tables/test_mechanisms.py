"""What mechanisms cost and what masks tell, from fabricated accuracies whose differences are known."""

from __future__ import annotations

import pytest

from pagnn_bench.analysis.tables.mechanisms import (
    cost_table,
    mask_table,
    mechanism_table,
    unlabelled_table,
)
from pagnn_bench.analysis.tables.results import load_results
from pagnn_bench.analysis.tables.study import Study, read_study
from pagnn_bench.records.store import Store
from tests.fabricate import make_cell, save_trials

# data, missing, rate → method → accuracy on mask 1 of 0, 1, 2
ACCURACIES = {
    ("cora", "type1", 0.5): {"zero": 60, "mask_concat": 62, "fp": 80, "gain": 70},
    ("cora", "class", 0.5): {"zero": 50, "mask_concat": 70, "fp": 74},
    ("cora", "type2", 0.5): {"zero": 65, "fp": 81},
    ("cora", "self", 0.5): {"zero": 40, "fp": 60},
    ("citeseer", "type1", 0.5): {"zero": 50},
    ("citeseer", "class", 0.5): {"zero": 46, "fp": 66},
    ("citeseer", "type1", 0.9): {"zero": 30},
    ("citeseer", "shift", 0.9): {"zero": 48},
    ("citeseer", "type1", 0.1): {"zero": 55},  # no mechanism at this rate
}


def save(store: Store, method: str, value: float, data: str, missing: str, rate: float, **changed) -> None:
    """Three masks: mask_concat varies by a point from mask to mask, the others do not."""
    step = method == "mask_concat"
    save_trials(
        store,
        make_cell(method, data, missing, rate, **changed),
        lambda mask, seed: value + step * (mask - 1) + (seed - 0.5),
        masks=range(3),
        seeds=range(2),
        of_mask=lambda mask: {
            "mask_label_share": 0.2 + mask / 10,
            "missing_share": (rate or 0.9) - 0.001 * mask,
        },
    )


@pytest.fixture
def study(tmp_path) -> Study:
    store = Store(tmp_path)
    for (data, missing, rate), methods in ACCURACIES.items():
        for method, value in methods.items():
            save(store, method, value, data, missing, rate)
    save(store, "zero", 33, "citeseer", "shift", 0.0, missing_={"test_rate": 0.9})
    save(store, "zero", 71, "cora", "unlabelled", 0.0, data_={"split": "random"})
    save(store, "zero", 99, "cora", "class", 0.5, protocol="shared")
    return read_study(load_results(store).under("paper"))


def texts(part) -> dict[str, list[str]]:
    """First column → the others, small print behind the text."""
    return {row[0].text: [f"{value.text} {value.small}".strip() for value in row[1:]] for row in part.rows}


def test_the_cost_of_a_mechanism_is_the_difference_to_chance_averaged_over_graphs(study):
    [part] = cost_table(study).parts
    assert part.header == [
        "hidden",
        "rate",
        "explained",
        "FP",
        "Mask concat",
        "Zero filling",
    ]  # GAIN met no mechanism
    found = [[f"{value.text} {value.small}".strip() for value in row] for row in part.rows]
    assert found == [
        [
            "By class",
            "0.5",
            "30.0 %",
            "-6.0 (1 of 2)",
            "+8.0 (1 of 2)",
            "-7.0",
        ],  # -10 on Cora, -4 on Citeseer
        ["Shift, test nodes complete", "0.9", "30.0 %", "", "", "+18.0 (1 of 2)"],
        ["Shift, test nodes incomplete", "0.9", "30.0 %", "", "", "+3.0 (1 of 2)"],
        ["By own value", "0.5", "30.0 %", "-21.0 (1 of 2)", "", "-25.0 (1 of 2)"],  # beside type 2
    ]


def test_costs_are_compared_on_masks_that_all_methods_have(tmp_path):
    """Mask 2 is 30 points easier by chance; a method that was run on it must not look as if it lost more by class."""
    store = Store(tmp_path)
    for method, masks in (("zero", 3), ("fp", 2)):
        random, by_class = (make_cell(method, "cora", missing, 0.5) for missing in ("type1", "class"))
        save_trials(store, random, lambda mask, seed: 60.0 + 30 * (mask == 2), masks=range(masks))
        save_trials(store, by_class, lambda mask, seed: 55.0, masks=range(masks))
    [part] = cost_table(read_study(load_results(store).under("paper"))).parts
    assert part.header[3:] == ["FP", "Zero filling"]
    assert [value.text for value in part.rows[0][3:]] == ["-5.0", "-5.0"]


def test_what_a_mask_tells_stands_beside_what_seeing_it_is_worth(study):
    [part] = mask_table(study).parts
    cora = part.rows[: min(part.rules)]  # the first graph; its columns at rate 0.5
    rows = {row[1].text: [(value.text, value.small) for value in row[2:5]] for row in cora}
    assert [row[0].text for row in cora] == ["Cora", "", "", ""]
    # Leads of 19, 20 and 21 points: t of 0.975 on two degrees of freedom is 4.303, and 4.303 / √3 is 2.48.
    assert rows["By class"] == [("30.0 %", ""), ("+20.0", "[+17.5, +22.5]"), ("+18.0", "")]
    assert rows["Type 1"] == [("30.0 %", ""), ("+2.0", "[-0.5, +4.5]"), ("", "")]


def test_records_from_before_there_was_a_share_leave_it_empty(tmp_path):
    store = Store(tmp_path)
    save_trials(store, make_cell("zero", missing="degree"), lambda mask, seed: 60.0)
    [part] = mask_table(read_study(load_results(store).under("paper"))).parts
    assert part.rows == []
    [part] = mechanism_table(read_study(load_results(store).under("paper"))).parts
    assert texts(part) == {"By degree": ["", "60.0 ±0.0"]}


def test_every_graph_and_rate_with_a_mechanism_has_its_table(study):
    parts = {part.header[0]: texts(part) for part in mechanism_table(study).parts}
    assert [*parts] == ["Cora, rate 0.5", "Citeseer, rate 0.5", "Citeseer, rate 0.9"]
    assert [*parts["Cora, rate 0.5"]] == ["Type 1", "By class", "Type 2", "By own value"]
    # FP, mask concat, zero filling
    cora = parts["Cora, rate 0.5"]
    assert cora["By class"] == ["49.9 %", "74.0 ±0.0 (-6.0)", "70.0 ±1.0 (+8.0)", "50.0 ±0.0 (-10.0)"]
    assert cora["Type 2"] == ["49.9 %", "81.0 ±0.0", "", "65.0 ±0.0"]


def test_training_nodes_only_stands_apart(study):
    [part] = unlabelled_table(study).parts
    assert texts(part) == {"Cora[split=random]": ["89.9 %", "71.0 ±0.0"]}
