"""The paper as data, against its LaTeX source where that is at hand."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest

from pagnn_bench.analysis.paper import (
    DATASETS,
    METHODS,
    RATES,
    TABLES,
    paper_datasets,
    paper_entries,
)

SOURCE = Path(os.environ.get("PAGNN_PAPER", Path(__file__).parents[3] / "shared" / "paper" / "pagnn.tex"))
LABELS = {label: name for name, label in METHODS.items() if name != "gcnmf"} | {"GCN": "gcnmf"}


@pytest.fixture(scope="module")
def latex() -> str:
    if not SOURCE.is_file():
        pytest.skip("the LaTeX source of the paper is not at hand; PAGNN_PAPER=FILE names it")
    return SOURCE.read_text(encoding="utf-8")


def table(latex: str, label: str) -> list[str]:
    """The lines of a table, without its rules."""
    body = latex[latex.index(f"\\label{{{label}}}") :]
    body = body[: body.index("\\end{tabular}")]
    return [line.strip() for line in body.splitlines() if line.count("&") > 1]


@pytest.mark.parametrize(("number", "missing"), TABLES.items())
def test_every_entry_is_the_printed_one(latex, number, missing):
    printed = {}
    data: list[str] = []
    for line in table(latex, f"tab:result{int(number) - 1}"):
        if "multicolumn" in line:
            data = [name.lower() for name in re.findall(r"\{c\|?\}\{(\w+)\}", line)]
        elif line.startswith("&"):
            rates = [float(text) for text in re.findall(r"0\.\d", line)]
            assert rates == [*RATES, *RATES]
        else:
            label = re.match(r"(PaGNN-[MN]|[A-Z]+)", line)[1]
            values = [float(text) for text in re.findall(r"\d\d\.\d\d", line)]
            assert len(values) == 10
            columns = [(name, rate) for name in data for rate in RATES]
            for (name, rate), value in zip(columns, values, strict=True):
                printed[missing, name, LABELS[label], rate] = (value, r"\ast" in line)
    ours = {
        key: (entry.accuracy, entry.copied) for key, entry in paper_entries().items() if key[0] == missing
    }
    assert ours == printed


def test_the_table_of_datasets_is_the_printed_one(latex):
    printed = {}
    for line in table(latex, "tab:dataset"):
        if match := re.match(r"(\w+)~\\cite\{\w+\}\s*&(\d+)&(\d+)&(\d+)&(\d+)", line):
            printed[match[1].lower()] = dict(
                zip(("nodes", "edges", "features", "classes"), map(int, match.groups()[1:]))
            )
    assert paper_datasets() == printed


def test_what_there_is():
    entries = paper_entries()
    assert len(entries) == 260
    assert Counter(key[2] for key in entries) == {name: 20 if name == "sat" else 40 for name in METHODS}
    assert {key[1] for key in entries} == set(DATASETS) == set(paper_datasets())
    assert {key[2] for key, entry in entries.items() if entry.copied} == {"vae", "gain", "gcnmf"}
    assert paper_entries()["type1", "cora", "pagnn_n", 0.1].accuracy == 81.78
    assert ("type2", "cora", "sat", 0.1) not in paper_entries()
