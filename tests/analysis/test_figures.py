"""Figures: what is in them, and that the page's form carries its values."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from pagnn_bench.analysis.figures import draw_all
from pagnn_bench.analysis.figures.canvas import INK, Tips, _with_tips, entries_abreast, page_svgs, save_figure
from pagnn_bench.analysis.figures.common import describe
from pagnn_bench.analysis.tables.results import Results, load_results
from pagnn_bench.analysis.tables.timing import Timings, read_timings
from pagnn_bench.records.store import Store
from tests.fabricate import like_the_paper, make_cell, save_trials

NASTY = '<b onclick="x">&'


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    """Two methods of the paper and one of a user's on Cora, timings and curves: every figure once."""
    store = Store(tmp_path_factory.mktemp("results"))
    for method in ("mf", "pagnn_n"):
        for rate in (0.1, 0.5):
            cell = make_cell(method, rate=rate)
            save_trials(store, cell, like_the_paper(cell), masks=range(3), seeds=range(2))
        timing = make_cell(method, protocol="timing")
        save_trials(store, timing, lambda mask, seed: 70.0, [0], range(3), stack=1)
    mine = make_cell("mine", method_={"label": NASTY})
    save_trials(store, mine, lambda mask, seed: 60.0, [0], [0])
    curves = make_cell(protocol="convergence")
    save_trials(store, curves, lambda mask, seed: 70.0, [0], range(2), epochs=40, curve=True)
    results = load_results(store)
    drawn = draw_all(results, results.under("paper"), read_timings(results), results.under("convergence"))
    return {figure.name: figure for figure in drawn}


@pytest.fixture(scope="module")
def panels(figures):
    return {name: page_svgs(figure) for name, figure in figures.items()}


def tips(svg: str) -> list[str]:
    return [element.get("data-tip") for element in ET.fromstring(svg).iter() if element.get("data-tip")]


def test_every_figure_is_there(figures):
    assert list(figures) == ["accuracy", "difference", "timing", "trade-off", "convergence"]
    assert {name: len(figure.panels) for name, figure in figures.items()} == {
        "accuracy": 1,
        "difference": 1,
        "timing": 2,
        "trade-off": 1,
        "convergence": 1,
    }


def test_every_point_of_ours_and_of_the_paper_has_its_value(panels):
    texts = tips(panels["accuracy"][0])
    assert len(texts) == 5 + 4  # ours, and the paper's of two methods at two rates
    assert sum(text.startswith("paper, ") for text in texts) == 4
    assert "paper, PaGNN-N, rate 0.5: 77.46 %" in texts
    assert f"{NASTY}, rate 0.5: 60.00 %, n = 1" in texts


def test_values_on_the_other_figures(panels):
    assert len(tips(panels["difference"][0])) == 4
    assert any("ms per epoch" in text and "times MF" in text for text in tips(panels["timing"][0]))
    assert len(tips(panels["timing"][1])) == 2
    assert len(tips(panels["trade-off"][0])) == 2  # mine was not timed alone
    assert tips(panels["convergence"][0])[0] == "PaGNN-N, epoch 1: mean training loss 2.100"


def test_the_pages_form_takes_the_pages_colours_and_repeats_no_id(panels):
    for svgs in panels.values():
        for svg in svgs:
            assert INK not in svg
            assert "currentColor" in svg
            assert "<b " not in svg  # the user's label came through escaped
            ids = re.findall(r'(?<![-\w])id="([^"]+)"', svg)
            assert len(ids) == len(set(ids))
            assert all(f"#{name}" in svg for name in ids)


def test_files_in_three_formats_are_the_same_each_time(figures, tmp_path):
    first, again = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    again.mkdir()
    for folder in (first, again):
        paths = save_figure(figures["convergence"], folder)
        assert [path.suffix for path in paths] == [".svg", ".pdf", ".png"]
    assert (first / "convergence.pdf").read_bytes().startswith(b"%PDF")
    assert (first / "convergence.png").read_bytes().startswith(b"\x89PNG")
    ET.parse(first / "convergence.svg")
    for path in first.iterdir():
        assert path.read_bytes() == (again / path.name).read_bytes(), path.name


def test_nothing_to_draw():
    assert draw_all(Results([], {}), [], Timings(None, []), []) == []


def test_without_timings_the_trade_off_says_that_times_are_those_of_stacks(tmp_path):
    store = Store(tmp_path)
    for method in ("mf", "pagnn_n"):
        save_trials(store, make_cell(method), lambda mask, seed: 70.0)
    drawn = {
        figure.name: figure
        for figure in draw_all(load_results(store), load_results(store).under("paper"), Timings(None, []), [])
    }
    assert "many seeds trained at once" in drawn["trade-off"].caption
    assert "timing" not in drawn


def test_texts_go_to_the_marks_in_order():
    svg = '<g id="tip0-"><use a="1"/><use a="2"/></g><use a="3"/>'
    found = _with_tips(svg, "tip0-", ["x", "<y>"])
    assert re.findall(r'data-tip="(.*?)" a="(\d)"', found) == [("x", "1"), ("&lt;y&gt;", "2")]
    assert _with_tips('<g id="tip0-"><text/></g>', "tip0-", ["x"]).startswith('<g class="tip"')
    names = Tips()
    assert names.add("a") != names.add("b")


def test_an_interval_over_seeds_says_so(tmp_path):
    store = Store(tmp_path)
    save_trials(store, make_cell(), lambda mask, seed: 70.0 + seed, [0], range(3))
    result = load_results(store).all[0]
    assert "(seeds only)" in describe(result)


def test_entries_of_a_legend_are_in_one_row_or_in_rows_of_the_same_length():
    texts = ["MF", "VAE", "GAIN", "SAT", "GCNmf", "PaGNN-M", "PaGNN-N", "the paper's numbers"]
    assert entries_abreast(texts, width=12.0) == 8
    assert entries_abreast(texts, width=7.5) == 4
    assert entries_abreast(["a name"] * 5, width=4.0) == 3  # four would fit, and the fifth stand alone
    assert entries_abreast(texts, width=0.1) == 1
