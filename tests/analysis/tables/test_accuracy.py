"""The paper's layout: what is bold, what stands below an entry, and what is left empty."""

from __future__ import annotations

import pytest

from pagnn_bench.analysis.tables.layout import signed
from pagnn_bench.analysis.tables.render import to_markdown
from pagnn_bench.analysis.tables.results import load_results
from pagnn_bench.analysis.tables.selection import accuracy_tables
from tests.analysis.tables.reading import fill, tables
from tests.fabricate import like_the_paper, make_cell, save_trials


@pytest.mark.parametrize(("on_mask_0", "bold"), [(69.0, True), (72.0, False)])
def test_bold_is_the_highest_if_it_is_so_on_common_masks_too(store, capsys, on_mask_0, bold):
    save_trials(store, make_cell("mf"), lambda mask, seed: 70.0 + 10 * mask, masks=range(2), seeds=[0])
    save_trials(store, make_cell("pagnn_n"), lambda mask, seed: on_mask_0, masks=[0], seeds=[0])
    text = tables(store, capsys, "--table", "2")
    assert ("**75.00**" in text) == bold
    assert "75.00" in text
    assert f"**{on_mask_0:.2f}**" not in text
    assert "in bold the highest, provided it is also the highest on common masks" in text


def test_a_single_mask_is_never_best_where_others_have_more(store, capsys):
    for method, value, masks in (("mf", 70.0, 2), ("pagnn_n", 71.0, 3), ("zero", 80.0, 1)):
        save_trials(store, make_cell(method), lambda mask, seed, v=value: v, masks=range(masks), seeds=[0])
    text = tables(store, capsys, "--table", "2")
    assert "**71.00**" in text
    assert "**80.00**" not in text


def test_markdown_is_aligned_has_the_best_in_bold_and_leaves_empty_what_is_missing(store, capsys):
    for method, value in {"mf": 70.0, "pagnn_m": 72.0, "pagnn_n": 71.0, "full": 90.0}.items():
        fill(store, method, value, rate=0.1)
    fill(store, "mf", 60.0, rate=0.3)
    text = tables(store, capsys, "--table", "2")
    block = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(line) for line in block}) == 1
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in block]
    assert cells[0] == ["Cora", "0.1", "0.3", "0.5", "0.7", "0.9"]
    assert cells[2] == ["MF", "70.75   ±0.71", "60.75 ±0.71", "", "", ""]
    assert cells[3] == ["PaGNN-M", "**72.75** ±0.71", "", "", "", ""]
    assert cells[5][1].startswith("90.75")  # the ceiling sees what is hidden: never the best
    for words in (
        "every method with its own authors' settings",
        "Split: public",
        "protocol paper",
        "n = 4 trials on 2 masks in every entry",
    ):
        assert words in text


def test_an_entry_with_another_number_of_trials_says_so(store, capsys):
    fill(store, "mf", rate=0.1)
    fill(store, "mf", rate=0.3)
    save_trials(store, make_cell("mf"), lambda mask, seed: 60.0, masks=[0], seeds=[0])
    text = tables(store, capsys)
    assert "unless noted" in text
    assert "60.00 n=1" in text


def test_compare_sets_the_papers_numbers_and_a_verdict_below_ours(store, capsys):
    cell = make_cell(rate=0.9)
    save_trials(store, cell, like_the_paper(cell, shift=5.0, spread=0.01))
    lines = [
        line for line in tables(store, capsys, "--compare", "paper").splitlines() if line.startswith("|")
    ]
    last = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[-3:]]
    assert [line[1] for line in last] == ["ours", "paper", "difference"]
    assert last[1][-1] == "56.60"
    assert last[2][-1].startswith("+5.0")
    assert last[2][-1].endswith("≠")
    assert any("paper*" in line and "VAE" in line for line in lines)


def test_no_minus_zero():
    assert signed(-0.001) == "+0.00"
    assert signed(-0.04, 1) == "+0.0"
    assert signed(-1.26, 1) == "-1.3"


def test_an_empty_table_renders(store):
    results = load_results(store)
    for table in accuracy_tables(results, "paper", compare=True):
        assert "81.78" in to_markdown(table) or "82.22" in to_markdown(table)
