"""``pagnn-bench tables`` on fabricated results."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys

import pytest
from scipy import stats as scipy_stats

from pagnn_bench.cli import main
from pagnn_bench.store import Store
from pagnn_bench.tables.command import accuracy_tables
from pagnn_bench.tables.layout import signed, three_digits
from pagnn_bench.tables.render import latex_text, to_latex, to_markdown
from pagnn_bench.tables.results import DIFFERS, INSIDE, TOLERATED, TOO_FEW, load_results, tolerance
from pagnn_bench.tables.timing import measure, timing_protocol
from tests.fabricate import PROVENANCE, like_the_paper, make_cell, save_trials

KEYS = [
    *("method", "data", "missing", "rate", "protocol"),
    *("mean", "std", "std_seeds", "ci_low", "ci_high", "ci_over", "n_trials", "n_masks"),
    *("paper", "difference", "verdict", "epochs", "seconds_per_epoch"),
]


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "results")


def tables(store: Store, capsys, *arguments: str) -> str:
    capsys.readouterr()
    assert main(["tables", "--results", str(store.cells_dir.parent), *arguments]) == 0
    return capsys.readouterr().out


def records(store: Store, capsys, *arguments: str) -> list[dict]:
    return json.loads(tables(store, capsys, "--format", "json", *arguments))


def fill(store: Store, method: str = "pagnn_n", value: float | None = None, **where) -> None:
    """A cell of two masks with two seeds each, around ``value`` or the paper's number."""
    cell = make_cell(method, **where)
    exact = like_the_paper(cell) if value is None else lambda mask, seed: value + mask + seed / 2
    save_trials(store, cell, exact, masks=range(2), seeds=range(2))


# ---- the flat form


def test_json_has_every_entry_of_the_paper_and_the_keys_promised(store, capsys):
    fill(store, "zero", 70.0)
    found = records(store, capsys)
    assert all(list(record) == KEYS for record in found)
    assert sum(record["paper"] is not None for record in found) == 260
    assert [record["method"] for record in found if record["mean"] is not None] == ["zero"]


def test_the_numbers_of_a_record(store, capsys):
    fill(store, "pagnn_n", 77.0)  # trials 77, 77.5 and 78, 78.5: mask means 77.25 and 78.25
    record = next(record for record in records(store, capsys, "--table", "2") if record["mean"] is not None)
    half = scipy_stats.t.ppf(0.975, 1) * 0.5
    assert record["mean"] == 77.75
    assert record["std"] == pytest.approx(0.5**0.5, abs=1e-4)
    assert record["std_seeds"] == pytest.approx(0.5 * 0.5**0.5, abs=1e-4)
    assert (record["ci_low"], record["ci_high"]) == pytest.approx((77.75 - half, 77.75 + half), abs=1e-4)
    assert (record["ci_over"], record["n_trials"], record["n_masks"], record["epochs"]) == (
        "masks",
        4,
        2,
        300,
    )
    assert (record["paper"], record["difference"], record["verdict"]) == (77.46, 0.29, TOLERATED)
    assert record["seconds_per_epoch"] == pytest.approx(0.0046 * 1.01)


def test_csv_holds_the_same(store, capsys):
    fill(store)
    rows = list(csv.DictReader(io.StringIO(tables(store, capsys, "--format", "csv"))))
    flat = [
        {key: "" if value is None else str(value) for key, value in record.items()}
        for record in records(store, capsys)
    ]
    assert rows == flat


def test_the_interval_of_a_single_mask_says_that_it_covers_seeds_only(store, capsys):
    save_trials(store, make_cell(), lambda mask, seed: 77.0 + seed, masks=[0], seeds=[0, 1])
    record = next(record for record in records(store, capsys) if record["mean"] is not None)
    assert record["ci_low"] < record["ci_high"]
    assert record["ci_over"] == "seeds"


def test_masks_count_alike_however_many_seeds_they_have(store, capsys):
    save_trials(store, make_cell(), lambda mask, seed: 70.0, masks=[0], seeds=range(20))
    save_trials(store, make_cell(), lambda mask, seed: 80.0, masks=[1], seeds=[0])
    record = next(record for record in records(store, capsys) if record["mean"] is not None)
    assert record["mean"] == 75.0


def test_a_single_trial_has_no_interval(store, capsys):
    save_trials(store, make_cell(), lambda mask, seed: 77.5, masks=[0], seeds=[0])
    record = next(record for record in records(store, capsys) if record["mean"] is not None)
    assert (record["std"], record["ci_low"], record["ci_high"]) == (None, None, None)
    assert record["verdict"] == TOO_FEW


@pytest.mark.parametrize(
    ("rate", "shift", "verdict"),
    [
        (0.5, 0.4, TOLERATED),
        (0.5, 0.6, DIFFERS),
        (0.7, 0.9, TOLERATED),
        (0.9, 2.4, TOLERATED),
        (0.9, 2.6, DIFFERS),
    ],
)
def test_tolerance_grows_with_the_rate(store, capsys, rate, shift, verdict):
    cell = make_cell(rate=rate)
    save_trials(store, cell, like_the_paper(cell, shift, spread=0.0), masks=[0, 1], seeds=[0])
    record = next(record for record in records(store, capsys) if record["mean"] is not None)
    assert record["verdict"] == verdict
    assert abs(shift) <= tolerance(rate) or verdict == DIFFERS


@pytest.mark.parametrize("seeds", [1, 5])
@pytest.mark.parametrize(("shift", "verdict"), [(0.0, TOO_FEW), (-1.9, TOO_FEW), (-2.1, DIFFERS)])
def test_a_single_mask_differs_only_if_it_is_far_off(store, capsys, shift, verdict, seeds):
    cell = make_cell(rate=0.5)
    save_trials(store, cell, like_the_paper(cell, shift, spread=0.0), masks=[0], seeds=range(seeds))
    record = next(record for record in records(store, capsys) if record["mean"] is not None)
    assert record["verdict"] == verdict


@pytest.mark.parametrize(
    ("masks", "spread", "verdict"),
    [
        (2, 0.05, DIFFERS),  # mask means 0.7 ± 0.05 off: half an interval is 0.64
        (2, 0.07, INSIDE),  # 0.89
        (2, 0.5, TOO_FEW),  # 6.4
        (40, 0.5, DIFFERS),  # the same spread on many masks
    ],
)
def test_an_interval_that_holds_anything_agrees_with_nothing(store, capsys, masks, spread, verdict):
    cell = make_cell(rate=0.5)  # 77.46 in the paper
    save_trials(store, cell, lambda mask, seed: 78.16 + spread * (-1) ** mask, masks=range(masks), seeds=[0])
    record = next(record for record in records(store, capsys) if record["mean"] is not None)
    assert record["verdict"] == verdict


# ---- settings never meet


def test_settings_that_differ_never_meet_in_one_entry(store, capsys):
    fill(store, value=70.0)
    fill(store, value=60.0, method_={"hidden": 32})
    fill(store, value=50.0, data_={"split": "random"})
    fill(store, value=40.0, protocol_={"lr": 0.1})
    fill(store, value=30.0, protocol="quick")
    fill(store, value=20.0, missing_={"exact": True})
    named = {
        tuple(record[key] for key in ("method", "data", "missing", "protocol")): record["mean"]
        for record in records(store, capsys)
        if record["mean"] is not None
    }
    assert named == {
        ("pagnn_n", "cora", "type1", "paper"): 70.75,
        ("pagnn_n[hidden=32]", "cora", "type1", "paper"): 60.75,
        ("pagnn_n", "cora[split=random]", "type1", "paper"): 50.75,
        ("pagnn_n", "cora", "type1", "paper[lr=0.1]"): 40.75,
        ("pagnn_n", "cora", "type1", "quick"): 30.75,
        ("pagnn_n", "cora", "type1[exact=true]", "paper"): 20.75,
    }


def test_defaults_that_depend_on_the_data_are_defaults(store, capsys):
    fill(store, data="amaphoto", method_={"hidden": 64})
    fill(store, data="mine", data_={"recommended": {"hidden": 8, "weight_decay": 0.1}}, method_={"hidden": 8})
    assert [r["method"] for r in records(store, capsys) if r["mean"] is not None] == ["pagnn_n", "pagnn_n"]


def test_what_a_packaged_dataset_does_not_recommend_is_no_default(store, capsys):
    fill(store, value=70.0)
    fill(store, value=60.0, data_={"recommended": {"hidden": 2, "weight_decay": 0.0005}})
    found = {(r["method"], r["protocol"]): r["mean"] for r in records(store, capsys) if r["mean"] is not None}
    other = ("pagnn_n[hidden=2]", "paper[weight_decay=0.0005]")
    assert found == {("pagnn_n", "paper"): 70.75, other: 60.75}


def test_a_protocol_of_one_s_own_names_the_settings_that_vary_and_no_others(store):
    """A grid has no usual setting; what it has on one dataset only is a setting there, too."""
    grid = {"cora": [(0.01, "none"), (0.02, "none"), (0.01, "row")], "amacomp": [(0.01, "none")]}
    for data, settings in grid.items():
        for decay, norm in settings:
            changed = {"weight_decay": decay, "feature_norm": norm}
            save_trials(store, make_cell(data=data, protocol="grid", protocol_=changed), lambda m, s: 70.0)
        save_trials(store, make_cell(data=data, protocol="timing"), lambda mask, seed: 70.0)
    names = {(r.key.data, r.key.protocol) for r in load_results(store).all}
    assert names == {
        ("cora", "grid[feature_norm=none,weight_decay=0.01]"),
        ("cora", "grid[feature_norm=none,weight_decay=0.02]"),
        ("cora", "grid[feature_norm=row,weight_decay=0.01]"),
        ("amacomp", "grid[feature_norm=none,weight_decay=0.01]"),
        ("cora", "timing"),
        ("amacomp", "timing"),
    }


def test_unknown_methods_have_their_most_common_settings_as_default(store, capsys):
    for rate in (0.1, 0.5):
        fill(store, "mine", 60.0, rate=rate, method_={"depth": 2})
    fill(store, "mine", 50.0, method_={"depth": 3})
    found = {(r["method"], r["rate"]) for r in records(store, capsys) if r["mean"] is not None}
    assert found == {("mine", 0.1), ("mine", 0.5), ("mine[depth=3]", 0.5)}


def test_one_protocol_at_a_time_and_the_others_are_named(store, capsys):
    fill(store, value=70.0)
    fill(store, value=30.0, protocol="quick")
    text = tables(store, capsys)
    assert "70.75" in text
    assert "30.75" not in text
    assert "1 cell under protocol quick" in text
    assert "30.75" in tables(store, capsys, "--protocol", "quick")
    assert main(["tables", "--results", str(store.cells_dir.parent), "--protocol", "none"]) == 2
    assert "choose one of paper, quick" in capsys.readouterr().err


# ---- the layout


@pytest.mark.parametrize(("on_mask_0", "bold"), [(69.0, True), (72.0, False)])
def test_bold_is_the_highest_if_it_is_so_on_common_masks_too(store, capsys, on_mask_0, bold):
    save_trials(store, make_cell("mf"), lambda mask, seed: 70.0 + 10 * mask, masks=range(2), seeds=[0])
    save_trials(store, make_cell("pagnn_n"), lambda mask, seed: on_mask_0, masks=[0], seeds=[0])
    text = tables(store, capsys, "--table", "2")
    assert ("**75.00**" in text) == bold
    assert "75.00" in text
    assert f"**{on_mask_0:.2f}**" not in text
    assert "in bold the highest if it is the highest on common masks, too" in text


def test_a_single_mask_is_not_the_best_where_others_have_more(store, capsys):
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
        "stopping rule either",
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


def test_nothing_run_yet(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["tables"]) == 0
    assert capsys.readouterr().out.startswith("Nothing has been run yet")
    assert main(["tables", "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 260
    for format_ in ("latex", "html", "csv"):
        assert main(["tables", "--table", "2", "--format", format_, "--compare", "paper"]) == 0
        assert "81.78" in capsys.readouterr().out


def test_only_failures(store, capsys):
    store.save_failure(make_cell(), 0, [0], "ValueError: no", "Traceback", PROVENANCE)
    text = tables(store, capsys)
    assert "failed" in text
    assert "1 cell with failed batches" in text


def test_a_damaged_file_is_counted(store, capsys):
    fill(store)
    next(store.cells_dir.glob("*/mask0*.json")).write_text("{", encoding="utf-8")
    assert "1 file could not be read" in tables(store, capsys)


def test_writing_to_a_file(store, tmp_path, capsys):
    fill(store)
    path = tmp_path / "table.md"
    tables(store, capsys, "-o", str(path))
    assert path.read_text(encoding="utf-8") == tables(store, capsys)
    arguments = ["tables", "--results", str(store.cells_dir.parent), "-o", str(tmp_path / "no" / "x.md")]
    assert main(arguments) == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--table", "9"], ["--results", "/no/such"], ["--what"]])
def test_a_wrong_request_is_one_sentence(arguments, capsys):
    assert main(["tables", *arguments]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


# ---- timing and data


def test_timing_takes_lone_trials_and_adds_the_preparation_of_every_method(store, capsys):
    for method in ("mf", "pagnn_n"):
        save_trials(store, make_cell(method, protocol="timing"), lambda m, s: 70.0, [0], range(3), stack=1)
        save_trials(store, make_cell(method), lambda m, s: 70.0, [0], range(3), stack=3)
    results = load_results(store)
    assert timing_protocol(results) == "timing"
    mf, pagnn = measure(results.under("timing"))
    # 300 epochs at 4.0, 4.08, 4.16 ms; preparation takes 0.3 s = 1 ms per epoch.
    assert mf.repeats == pytest.approx((5.0, 5.08, 5.16))
    assert (mf.median, mf.prepare_share) == (pytest.approx(5.08), pytest.approx(1 / 5.08))
    assert pagnn.repeats == pytest.approx((5.6, 5.692, 5.784))
    assert pagnn.quartiles == pytest.approx((5.646, 5.738))
    record = records(store, capsys, "--table", "timing")[1]
    assert (record["method"], record["repeats"]) == ("pagnn_n", 3)
    assert record["ratio_to_mf"] == pytest.approx(5.692 / 5.08, abs=1e-4)
    shown = tables(store, capsys, "--table", "timing")
    assert "5.08 5.04–5.12" in shown
    assert "Measured on: cpu, 1 thread." in shown


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.99444, "0.994"), (25.46, "25.5"), (99.96, "100"), (1184.0, "1180"), (20499.0, "20500")],
)
def test_three_digits_without_an_exponent(value, text):
    assert three_digits(value) == text


def test_stacked_trials_give_no_timing(store, capsys):
    fill(store)
    assert timing_protocol(load_results(store)) is None
    assert "experiment=timing" in tables(store, capsys, "--table", "timing")


def test_the_table_of_datasets_without_data_at_hand(store, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PAGNN_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["tables", "--table", "data"]) == 0
    text = capsys.readouterr().out
    assert "143663" in text
    assert "Not at hand here: Cora" in text


# ---- LaTeX and HTML


NASTY = r"a_b & 50% #1 {x} \end{tabular} ~^ <b>|`* é 漢"


def test_latex_escapes_everything():
    text = latex_text(NASTY)
    assert text.startswith(r"a\_b \& 50\% \#1 \{x\} \textbackslash{}end\{tabular\}")
    assert "漢" not in text


def test_html_and_markdown_escape_everything(store, capsys):
    fill(store, "mine", 60.0, method_={"label": '<script>alert("x")</script>|'})
    html = tables(store, capsys, "--format", "html")
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    markdown = tables(store, capsys)
    assert "<script>" not in markdown
    assert r"\|" in markdown


def test_latex_looks_like_the_papers(store, capsys):
    for data in ("cora", "citeseer", "amaphoto"):
        for method in ("gcnmf", "pagnn_m", "pagnn_n"):
            fill(store, method, data=data)
    text = tables(store, capsys, "--format", "latex")
    assert r"\multicolumn{5}{c}{Cora} & \multicolumn{5}{c}{Citeseer} \\" in text
    for rule in (r"\toprule", r"\bottomrule", r"\cmidrule(lr){2-6}"):
        assert rule in text
    rows = [line for line in text.splitlines() if line.startswith(("GCNmf", "PaGNN"))]
    assert [row.count("&") for row in rows] == [10, 10, 10, 5, 5, 5]
    between = text[text.index("GCNmf") : text.index("PaGNN-M")]
    assert r"\midrule" in between


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex here")
def test_latex_compiles(store, tmp_path):
    fill(store, "pagnn_n")
    fill(store, "pagnn_n", missing="type2", data="amacomp")
    fill(store, "mine", 60.0, method_={"label": NASTY})
    save_trials(store, make_cell(protocol="timing"), lambda m, s: 70.0, [0], range(3), stack=1)
    results = load_results(store)
    texts = [
        to_latex(table) for compare in (False, True) for table in accuracy_tables(results, "paper", compare)
    ]
    packages = r"\usepackage[utf8]{inputenc}\usepackage{booktabs,graphicx}"
    document = [r"\documentclass{article}", packages, r"\begin{document}", *texts, r"\end{document}"]
    (tmp_path / "t.tex").write_text("\n".join(document), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120)
    log = done.stdout.decode(errors="replace")
    assert done.returncode == 0, log[-2000:]
    assert "Overfull" not in log


def test_an_empty_table_renders(store):
    results = load_results(store)
    for table in accuracy_tables(results, "paper", compare=True):
        assert "81.78" in to_markdown(table) or "82.22" in to_markdown(table)


def test_reading_needs_no_torch(store):
    fill(store)
    program = (
        "import sys; from pagnn_bench.cli import main; main(sys.argv[1:]); "
        "bad = {'torch', 'torch_geometric', 'hydra'} & set(sys.modules); sys.exit(f'imported: {bad}' if bad else 0)"
    )
    command = [sys.executable, "-c", program, "tables", "--results", str(store.cells_dir.parent)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
