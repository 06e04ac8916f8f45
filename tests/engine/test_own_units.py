"""What is filled in comes back in the units of the user's file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagnn_bench import apply
from pagnn_bench.api.applied import Applied
from pagnn_bench.data.encode import Encoding
from pagnn_bench.data.graph import Split, build_graph
from pagnn_bench.missing import Observed, standardise
from pagnn_bench.missing.scale import Scale

NODES = 24
RNG = np.random.default_rng(0)
AGE = np.where(
    np.arange(NODES) % 5 == 0, np.nan, 20.0 + np.arange(NODES)
)  # in years: far from standard units
INCOME = np.where(np.arange(NODES) % 7 == 3, np.nan, 1e5 * RNG.random(NODES))
COLOUR = np.array(
    [None if k % 6 == 5 else ("red", "blue", "green")[k % 3] for k in range(NODES)], dtype=object
)


@pytest.fixture(autouse=True)
def tables(tmp_path, monkeypatch) -> None:
    """A ring of people; ann is node 0, and so on."""
    monkeypatch.chdir(tmp_path)
    names = [f"p{k:02}" for k in range(NODES)]
    topic = np.where(np.arange(NODES) % 8 == 7, None, np.where(np.arange(NODES) % 2, "law", "art"))  # type: ignore[call-overload]
    nodes = pd.DataFrame({"id": names, "age": AGE, "colour": COLOUR, "income": INCOME, "topic": topic})
    nodes.to_csv("nodes.csv", index=False)
    pd.DataFrame({"a": names, "b": [*names[2:], *names[:2]]}).to_csv("edges.csv", index=False)


def applied(*words: str, **keys: Any) -> Applied:
    table = {"data": "table", "data__nodes": "nodes.csv", "data__edges": "edges.csv", "data__label": "topic"}
    split = {"data__id": "id", "data__train_per_class": 5, "data__num_val": 5, "missing": "natural"}
    rest = {
        "data__one_hot": "auto",
        "data__standardise": True,
        "protocol": "quick",
        "seeds": 1,
        "device": "cpu",
    }
    return apply(*words, progress=False, **{**table, **split, **rest, **keys})  # type: ignore[arg-type]


def test_mean_filling_in_years(tmp_path):
    """MF fills in the mean of the column, which standardising and its way back must leave as it is."""
    made = applied(method="mf")
    attributes, observed = made.attributes, made.observed
    assert attributes is not None
    assert observed is not None
    assert list(attributes.columns) == ["age", "colour", "income"]
    assert attributes.index.name == "id"
    assert list(attributes.index[:2]) == ["p00", "p01"]
    for name, column in (("age", AGE), ("income", INCOME)):
        known = ~np.isnan(column)
        np.testing.assert_array_equal(observed[name], known)
        np.testing.assert_array_equal(attributes[name][known], column[known])  # to the last digit
        np.testing.assert_allclose(attributes[name][~known], np.nanmean(column), rtol=1e-5)
    known = np.array([value is not None for value in COLOUR])
    assert list(attributes["colour"][known]) == list(COLOUR[known])
    commonest = pd.Series(COLOUR).value_counts()
    expected = commonest.index[0] if commonest.iloc[0] > commonest.iloc[1] else None
    assert set(attributes["colour"][~known]) == {expected}


def test_a_category_that_does_not_stand_out_is_left_empty():
    """Zero filling says 0 of every category."""
    made = applied(method="zero")
    assert made.application.completed is not None
    empty = sum(value is None for value in COLOUR)
    assert made.application.completed.left_empty == empty
    assert made.attributes is not None
    assert made.attributes["colour"].isna().sum() == empty


def test_predictions_have_names_and_unlabelled_nodes_are_predicted():
    predictions = applied(method="pagnn_n", seeds=3).predictions
    assert predictions.index.name == "id"
    assert set(predictions["predicted"]) <= {"art", "law"}
    unlabelled = np.arange(NODES) % 8 == 7
    assert predictions["given"].isna().to_numpy().tolist() == unlabelled.tolist()
    assert (predictions["part"] == "").to_numpy().tolist() == unlabelled.tolist()
    assert predictions["part"].value_counts()["train"] == 10
    np.testing.assert_allclose(predictions[["p_art", "p_law"]].sum(axis=1), 1)
    assert (predictions["predicted"] == np.where(predictions.p_art > 0.5, "art", "law")).all()
    assert (predictions[["sd_art", "sd_law"]] > 0).all(axis=None)


def test_what_is_hidden_on_top_counts_as_filled_in():
    made = applied(method="mf", rate=0.5)
    assert made.observed is not None
    assert made.observed["age"].sum() < (~np.isnan(AGE)).sum()
    hidden = made.observed.index[~made.observed["age"]]
    assert made.attributes is not None
    assert made.attributes.loc[hidden, "age"].nunique() == 1


def test_nodes_outside_the_largest_component_are_left_out():
    """The first five people know each other only; the others keep their ids and their attributes."""
    pairs = [(k, k + 1) for k in range(4)] + [(k, k + 1) for k in range(5, NODES - 1)]
    pd.DataFrame([(f"p{a:02}", f"p{b:02}") for a, b in pairs], columns=["a", "b"]).to_csv(
        "edges.csv", index=False
    )
    made = applied("+protocol.component=largest", method="mf")
    assert made.attributes is not None
    assert list(made.attributes.index) == [f"p{k:02}" for k in range(5, NODES)]
    known = ~np.isnan(AGE[5:])
    np.testing.assert_array_equal(made.attributes["age"][known], AGE[5:][known])
    assert len(made.predictions) == NODES - 5


def test_arrays_keep_double_precision(tmp_path):
    values = np.column_stack([AGE / 3, INCOME / 7])
    labels = np.arange(NODES) % 2
    edges = np.stack([np.arange(NODES), (np.arange(NODES) + 2) % NODES])
    np.savez("mine.npz", features=values, edges=edges, labels=labels)
    made = apply(
        method="fp",
        data="custom",
        data__path=Path("mine.npz"),
        data__standardise=True,
        data__train_per_class=5,
        data__num_val=5,
        missing="natural",
        protocol="quick",
        seeds=1,
        device="cpu",
        progress=False,
    )
    completed = made.application.completed
    assert completed is not None
    known = ~np.isnan(values)
    np.testing.assert_array_equal(completed.observed, known)
    np.testing.assert_array_equal(completed.values[known], values[known])
    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    assert ((completed.values >= low - 1e-3 * high) & (completed.values <= high * 1.001)).all()  # FP averages


def test_standardising_is_undone():
    features = RNG.normal(3, 5, size=(6, 4))
    features[:, 1] = 7  # constant
    features[:, 2] = [0, 1, 0, 1, 1, 0]  # binary
    cells = np.ones((6, 4), dtype=bool)
    cells[:3, 3] = False  # no training node shows it
    split = Split(np.arange(3), np.array([3]), np.array([4, 5]))
    graph = build_graph("tiny", features, np.array([[0], [1]]), np.array([0, 1, 0, 1, 0, 1]), split)
    observed = Observed((6, 4), cells=cells)
    back = Scale.of(graph, observed).undo(standardise(graph, observed).features.toarray())
    np.testing.assert_allclose(back[:, :3], features[:, :3], rtol=1e-5, atol=1e-5)
    assert np.isnan(back[:, 3]).all()


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1), st.data())
def test_encoding_there_and_back(rows, data):
    """Whatever is missing: what was given comes back, and a category of which one column is hidden is still known."""
    features = np.array(rows, dtype=float)
    gone = np.array(data.draw(st.lists(st.booleans(), min_size=features.size, max_size=features.size)))
    features[gone.reshape(features.shape)] = np.nan
    columns = [column for column in (0, 2) if not np.isnan(features[:, column]).all()]
    if not columns:
        return
    encoding = Encoding.of("mine", features, None, columns)
    encoded, known = encoding.encode(features, None)
    assert known is None
    values, given_ = encoding.decode(encoded, ~np.isnan(encoded))
    np.testing.assert_array_equal(given_, ~np.isnan(features))
    np.testing.assert_array_equal(values[given_], features[given_])
    assert np.isnan(values[~given_]).all()


def test_a_category_is_told_by_what_is_likeliest():
    """Red, green, blue; node 0 is shown not to be green; of node 1 nothing is shown; node 2 is shown to be green."""
    encoding = Encoding(np.array([], dtype=int), {0: np.array([10.0, 20.0, 30.0])})
    encoded = np.array([[0.3, 0.0, 0.4], [0.5, 0.2, 0.3], [9.0, 1.0, 0.3]])
    observed = np.array([[False, True, False], [False] * 3, [False, True, False]])
    values, given_ = encoding.decode(encoded, observed)
    assert values.ravel().tolist() == [30, 10, 20]
    assert given_.ravel().tolist() == [False, False, True]
