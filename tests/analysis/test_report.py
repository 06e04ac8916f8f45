"""``pagnn-bench report``: one page whatever the results are."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from pagnn_bench.analysis.claims import FAILS, HOLDS, MIXED, Claim, ClaimPart
from pagnn_bench.analysis.report.content import verdict_sentences
from pagnn_bench.analysis.report.statistics import statistics_tables
from pagnn_bench.analysis.tables.results import load_results
from pagnn_bench.cli import main
from pagnn_bench.records.store import Store
from tests.fabricate import ON_GPU, PROVENANCE, like_the_paper, make_cell, save_trials
from tests.imports import answer_without

VOID = {"meta", "link", "input", "br", "path", "rect", "use", "circle", "line", "stop"}


class Checker(HTMLParser):
    """Every tag is closed, every address stays inside the page."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("href", "src", "xlink:href"):
                self.addresses.append(value)
            if name == "id":
                self.ids.append(value)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "results")


def report(store: Store, capsys, *arguments: str) -> str:
    folder = store.cells_dir.parent
    folder.mkdir(exist_ok=True)
    assert main(["report", "--results", str(folder), *arguments]) == 0
    printed = capsys.readouterr().out.strip()
    assert printed == f"Report: {folder / 'report' / 'index.html'}"
    html = (folder / "report" / "index.html").read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    assert all(address.startswith(("#", "data:")) for address in checker.addresses)
    assert {address[1:] for address in checker.addresses if address.startswith("#")} <= set(checker.ids)
    return html


def text_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_nothing_run_yet(store, capsys):
    html = report(store, capsys)
    assert "Nothing has been run under the protocol paper yet." in html
    assert "6 are undecided" in html
    assert 'class="absent"' in html  # the paper's numbers are there all the same


def test_only_failures_and_their_text_is_escaped(store, capsys):
    store.save_failure(make_cell(), 3, [0, 1], "ValueError: <img src=x>", "Traceback <b>", PROVENANCE)
    html = report(store, capsys)
    assert "ValueError: &lt;img src=x&gt;" in html
    assert "mask 3, 2 seeds" in html
    assert "<img" not in html


def test_one_trial_of_a_users_own_method(store, capsys):
    label = "</script><script>alert(1)</script>"
    save_trials(store, make_cell("mine", "mygraph", method_={"label": label}), lambda m, s: 61.0, [0], [0])
    html = report(store, capsys)
    assert label not in html
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in html
    assert "61.00" in html
    assert "There is no number to compare with the paper" in html


def test_a_whole_report(store, capsys):
    for method in ("mf", "pagnn_m", "pagnn_n"):
        for rate in (0.1, 0.5):
            cell = make_cell(method, rate=rate)
            save_trials(store, cell, like_the_paper(cell), masks=range(3), seeds=range(2))
    save_trials(store, make_cell(protocol="quick"), lambda m, s: 33.33, [0], range(2))
    record = {"seed": 9, "status": "failed", "reason": "the loss was no longer a finite number", "epochs": 3}
    store.save(make_cell(), 7, [record], {}, PROVENANCE)
    html = report(store, capsys)
    text = text_of(html)
    assert "6 of the 260 entries of the paper's Tables 2 and 3 were run" in text.replace("&#39;", "'")
    assert "Also recorded: quick (1 cell)" in text
    assert "the loss was no longer a finite number" in text
    assert "0123456789" in text  # the commit
    assert "c" * 64 in text  # the checksum of the data
    assert html.count("<tr>") > 6
    folder = store.cells_dir.parent / "report"
    assert {path.name for path in folder.iterdir()} >= {
        "index.html",
        "results.csv",
        "results.json",
        "tables.tex",
        "accuracy.svg",
        "accuracy.pdf",
        "accuracy.png",
    }
    assert html.count('download="accuracy.') == 3
    assert str(store.cells_dir.parent) not in html  # no path of this machine


def test_a_gpu_is_named_with_its_software(store, capsys):
    for method, provenance in (("mf", ON_GPU), ("zero", PROVENANCE)):
        save_trials(store, make_cell(method), lambda m, s: 70.0, [0], [0], provenance=provenance)
    page = report(store, capsys)
    assert "NVIDIA T4, driver 550.54.14, CUDA 12.4, cuDNN 90100, TF32 off, 1 thread<" in page
    assert ">cpu, 1 thread<" in page


def test_the_verdict_is_three_sentences(store):
    save_trials(store, make_cell(), lambda mask, seed: 80.0 + mask, masks=range(2), seeds=range(2))
    verdicts = [HOLDS, HOLDS, FAILS, MIXED]
    claims = [Claim("", [ClaimPart("", verdict)]) for verdict in verdicts]
    under = load_results(store).under("paper")
    first, second, third = verdict_sentences(under, claims, "paper")
    assert first.startswith("Under the protocol paper, 1 of the 260 entries")
    assert "the largest +3.04 (PaGNN-N, Cora, Type 1, rate 0.5)" in second
    assert third == "Of the paper's 4 claims, 2 hold, 1 does not and 1 is mixed on these numbers."
    assert verdict_sentences(under, claims[:1], "paper")[2].endswith("claims, 1 holds on these numbers.")


def test_ranks_are_those_on_common_masks(store):
    for rate in (0.1, 0.5):
        for method, value in {"mf": 71.0, "zero": 70.0}.items():
            save_trials(store, make_cell(method, rate=rate), lambda mask, seed, v=value: v, [0], [0])
        save_trials(store, make_cell("fp", rate=rate), lambda mask, seed: 60.0 + 30 * mask, [0, 1], [0])
    [ranks] = [t for t in statistics_tables(load_results(store).under("paper"), "type1") if "rank" in t.name]
    assert [row[0].text for row in ranks.parts[0].rows] == ["MF", "Zero filling", "FP"]


def test_comparisons_and_ranks(store):
    levels = {"mf": 60.0, "pagnn_m": 70.0, "pagnn_n": 71.0}
    for method, level in levels.items():
        for rate in (0.1, 0.5):
            cell = make_cell(method, rate=rate)
            save_trials(
                store, cell, lambda m, s, x=level, k=method: x + 3 * m + 0.01 * len(k) * m, range(3), [0]
            )
    save_trials(store, make_cell("vae"), lambda m, s: 50.0, range(3), [0])
    comparisons, ranks = statistics_tables(load_results(store).under("paper"), "type1")
    rows = {row[0].text: row for row in comparisons.parts[0].rows}
    header = comparisons.parts[0].header
    entry = rows["PaGNN-N"][header.index("MF")]
    assert (entry.text, entry.small, entry.bold) == ("+11.05", "2/0/0", True)
    assert rows["MF"][header.index("PaGNN-N")].small == "0/0/2"
    assert [(row[0].text, row[1].text) for row in ranks.parts[0].rows] == [
        ("PaGNN-N", "1.00"),
        ("PaGNN-M", "2.00"),
        ("MF", "3.00"),
    ]
    assert "Left out" in ranks.caption[-1]
    assert "VAE" in ranks.caption[-1]


def test_no_statistics_from_a_single_method(store):
    save_trials(store, make_cell(), lambda mask, seed: 70.0)
    assert statistics_tables(load_results(store).under("paper"), "type1") == []


def test_open_shows_the_page(store, capsys, monkeypatch):
    shown = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    report(store, capsys, "--open")
    assert shown[0].startswith("file://")
    assert shown[0].endswith("index.html")


def test_a_folder_that_cannot_be_written_to(store, tmp_path, capsys):
    store.cells_dir.mkdir(parents=True)
    (tmp_path / "file").write_text("")
    assert main(["report", "--results", str(store.cells_dir.parent), "-o", str(tmp_path / "file" / "x")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_reporting_needs_no_torch(store):
    save_trials(store, make_cell(), lambda mask, seed: 70.0)
    done = answer_without(
        {"torch", "torch_geometric", "hydra"}, ["report", "--results", str(store.cells_dir.parent)]
    )
    assert done.returncode == 0, done.stderr
