"""From repeats to ratios, verdicts, tables, figures and pages, on documents that nobody measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pagnn_bench.analysis.tables.render import to_markdown
from pagnn_bench.bench.document import load_document, save_document
from pagnn_bench.bench.layout import make_table
from pagnn_bench.bench.speed import (
    CSR,
    OURS,
    PLAIN,
    ratio,
    ratio_range,
    reference_of,
    rows_of,
    verdict,
)
from pagnn_bench.bench.targets import TARGETS, target_of
from pagnn_bench.cli import main
from tests.bench.common import make_row, speed_document
from tests.fabricate import GPU

PLAIN_ROW = make_row(PLAIN, 1, [90.0, 100.0, 160.0], base_mb=400.0, peak_mb=450.0)
CSR_ROW = make_row(CSR, 1, [40.0, 50.0, 60.0])
OURS_ROW = make_row(OURS, 20, [1.0, 2.0, 1.5], prepare_seconds=0.3)
ROWS = (PLAIN_ROW, CSR_ROW, OURS_ROW)


@pytest.fixture
def document() -> dict:
    return speed_document(*ROWS)


@pytest.fixture
def saved(document, tmp_path) -> Path:
    save_document(document, tmp_path / "speed.json")
    return tmp_path / "speed.json"


def test_the_ratio_is_that_of_the_medians():
    assert (PLAIN_ROW.ms, OURS_ROW.ms, OURS_ROW.throughput) == (100.0, 1.5, pytest.approx(666.67, abs=0.01))
    assert ratio(OURS_ROW, PLAIN_ROW) == pytest.approx(100 / 1.5)
    assert ratio_range(OURS_ROW, PLAIN_ROW) == pytest.approx((50.0, 160 / 1.5))  # round by round
    assert PLAIN_ROW.extra_mb == 50.0


def test_the_memory_of_a_gpu_has_a_column_where_it_was_measured(document):
    assert "GPU MB" not in to_markdown(make_table(document))
    assert all("device_mb" not in row for row in document["rows"]), "documents of CPUs stay as they were"
    measured = speed_document(PLAIN_ROW, make_row(OURS, 20, [1.0], device_mb=321.4))
    measured["machine"] = {**measured["machine"], "device": "cuda:0", "gpu": GPU}
    text = to_markdown(make_table(measured))
    header, plain, ours = (line for line in text.splitlines() if line.startswith("|") and "---" not in line)
    assert [line.split("|")[-2].strip() for line in (header, plain, ours)] == ["GPU MB", "", "321"]
    assert "GPU: peak memory of its tensors." in text
    assert "Measured on: NVIDIA T4, driver 550.54.14, CUDA 12.4, A processor" in text


def test_a_row_is_compared_with_its_own_reference_only(document):
    rows = rows_of(document)
    assert reference_of(rows[2], rows, CSR) == rows[1]
    elsewhere = make_row(OURS, 20, [1.0], missing="type2")
    other = make_row(OURS, 20, [1.0], method="mf")
    assert reference_of(elsewhere, rows) is None
    assert reference_of(other, rows) is None


def test_the_document_comes_back_as_it_was(document, saved):
    assert load_document(saved) == document
    assert rows_of(load_document(saved)) == list(ROWS)


@pytest.mark.parametrize(("factor", "met"), [(0.99, True), (1.2, False)])
def test_a_target_is_met_or_not(factor, met):
    target = target_of("pagnn", "cora", "type1", 20)
    assert target is not None
    ours = make_row(OURS, 20, [factor * 100 / target.ratio])
    assert verdict(ours, PLAIN_ROW) == (target, met)


def test_targets_belong_to_a_family_a_place_and_a_number_of_seeds():
    assert target_of("gcnmf", "cora", "type1", 20).ratio == 50
    assert target_of("gcnmf", "cora", "type2", 20).ratio == 10
    assert target_of("pagnn", "cora", "type2", 1).ratio == 8
    assert target_of("pagnn", "amaphoto", "type1", 20).ratio == 15
    assert target_of("pagnn", "amaphoto", "type1", 20, "bfloat16").ratio == 30
    assert target_of("pagnn", "cora", "type1", 20, "bfloat16") is None
    assert target_of("pagnn", "cora", "type1", 5) is None
    assert target_of("other", "cora", "type1", 20) is None
    assert len({(t.family, t.data, t.missing, t.seeds, t.precision) for t in TARGETS}) == len(TARGETS)


def test_the_table(document):
    lines = to_markdown(make_table(document)).splitlines()
    [plain] = [line for line in lines if "plain loop |" in line or "plain loop  " in line]
    [ours] = [line for line in lines if "20 seeds" in line]
    assert "Cora, type1, rate 0.5" in lines[2]
    assert "PaGNN-N" in plain
    assert "450" in plain
    cells = [cell.split() for cell in ours.split("|")]
    assert cells[2:9] == [
        ["20", "seeds"],
        ["float32"],
        ["1.5", "1.25–1.75"],
        ["66.7", "50–107"],
        ["33.3", "25–40"],
        ["≥", "100"],
        ["not", "met"],
    ]
    assert any("A processor, 2 cores, 2 threads, 8 GB, torch 2.13.0" in line for line in lines)


def test_show_renders_table_and_figure(saved, capsys, tmp_path):
    assert main(["bench", "--show", str(saved), "--figure", str(tmp_path / "speed.svg")]) == 0
    assert "20 seeds" in capsys.readouterr().out
    assert (tmp_path / "speed.svg").read_text().startswith("<?xml")
    assert main(["bench", "--show", str(saved), "--format", "latex"]) == 0
    assert "\\begin{tabular}" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--help"], ["--show", "speed.json", "--figure", "speed.png"]])
def test_reading_needs_no_torch(arguments, saved):
    code = (
        "import sys; from pagnn_bench.cli import main\n"
        "try: code = main(['bench', *sys.argv[1:]])\n"
        "except SystemExit as exit_: code = exit_.code\n"
        "assert not {'torch', 'hydra'} & set(sys.modules)\n"
        "sys.exit(code)"
    )
    command = [sys.executable, "-c", code, *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=saved.parent)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.strip()


def test_what_is_no_document_is_refused(tmp_path, capsys, document):
    for content, why in (
        ("{", "is not JSON"),
        ("[]", "was not written by"),
        ('{"kind": "speed"}', "was not written by"),
        (json.dumps({**document, "schema": 99}), "has schema 99"),
    ):
        (tmp_path / "x.json").write_text(content)
        assert main(["bench", "--show", str(tmp_path / "x.json")]) == 2
        assert why in capsys.readouterr().err
    assert main(["bench", "--show", str(tmp_path / "none.json")]) == 2
    assert "cannot be read (No such file" in capsys.readouterr().err
