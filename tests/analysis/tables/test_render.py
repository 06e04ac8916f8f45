"""Markdown, LaTeX and HTML: escaped, in the paper's form, and compiled where there is a LaTeX."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from pagnn_bench.analysis.tables.render import latex_text, to_latex
from pagnn_bench.analysis.tables.results import load_results
from pagnn_bench.analysis.tables.selection import accuracy_tables
from tests.analysis.tables.reading import fill, tables
from tests.fabricate import make_cell, save_trials

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
