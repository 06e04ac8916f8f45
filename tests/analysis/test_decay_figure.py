"""Accuracy against weight decay: lines on common masks, a mark for every protocol, the paper's number at the side."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure as Sheet

from pagnn_bench.analysis.figures.canvas import Tips
from pagnn_bench.analysis.figures.decay import decay_figure
from pagnn_bench.analysis.tables.results import load_results
from pagnn_bench.records.store import Store
from tests.fabricate import make_cell, save_trials


@pytest.fixture
def store(tmp_path) -> Store:
    """One method on Cora; one of three weight decays has a mask more, on which everything is easier."""
    store = Store(tmp_path)
    for decay, masks in ((1e-4, range(2)), (1e-3, range(3)), (1e-2, range(2))):
        cell = make_cell("mf", rate=0.9, protocol="weight_decay", protocol_={"weight_decay": decay})
        save_trials(store, cell, lambda mask, seed: 90.0 if mask == 2 else 50.0 + mask, masks=masks)
    save_trials(store, make_cell("mf", rate=0.9, protocol="shared"), lambda mask, seed: 40.0)
    save_trials(store, make_cell("mf", rate=0.9), lambda mask, seed: 55.0)
    return store


def drawn(store: Store):
    figure = decay_figure(load_results(store))
    assert figure is not None
    [panel] = figure.panels
    axes, tips = Sheet().add_subplot(), Tips()
    panel.draw(axes, tips)
    return figure, axes, [text for texts in tips.texts.values() for text in texts]


def test_a_line_is_drawn_on_the_masks_that_all_its_points_have(store):
    _, axes, _ = drawn(store)
    line = axes.get_lines()[0]
    assert line.get_xdata().tolist() == [1e-4, 1e-3, 1e-2]
    assert line.get_ydata().tolist() == pytest.approx([50.5, 50.5, 50.5])


def test_every_protocol_and_the_paper_have_a_mark(store):
    figure, axes, texts = drawn(store)
    marks = {
        (line.get_marker(), *(round(float(v), 6) for v in (*line.get_xdata(), *line.get_ydata())))
        for line in axes.get_lines()
    }
    assert ("*", 5e-4, 55.0) in marks  # as published: the GCN's own weight decay
    assert ("s", 0.02, 40.0) in marks
    assert any(
        marker == "d" and y == 35.13 for marker, *_, y in marks
    )  # beside the axis: its decay is not known
    assert any(text.startswith("as published: MF") for text in texts)
    assert {"as published", "one setting for all", "MF"} <= {text for text, _, _ in figure.legend}


def test_other_rates_and_graphs_are_left_out(store):
    for data, rate in (("cora", 0.5), ("amaphoto", 0.9)):
        cell = make_cell("mf", data=data, rate=rate, protocol="weight_decay", protocol_={"weight_decay": 0.1})
        save_trials(store, cell, lambda mask, seed: 99.0)
    drawn(store)  # a single panel still


def test_nothing_without_a_sweep(tmp_path):
    assert decay_figure(load_results(Store(tmp_path))) is None
