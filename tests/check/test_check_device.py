"""The command on devices that are correct, wrong, inconsistent, lost or absent."""

from __future__ import annotations

import itertools
import json
import os
import warnings
from pathlib import Path

import pytest
import torch

from pagnn_bench.check import cases, cost, run, trials
from pagnn_bench.check.cost import waits_per_epoch
from pagnn_bench.cli import main
from pagnn_bench.methods.pagnn import PaGNN
from tests.methods.test_all_methods import SETTING

OTHER = "cpu:0"  # torch takes it for the CPU, but the two objects differ
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch):
    """Two methods on a small graph, without real data or results."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PAGNN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cases, "choices", lambda group: {"pagnn_n": "", "mf": ""})
    monkeypatch.setattr(cases, "VARIANTS", {})
    monkeypatch.setattr(cost, "ROUNDS", 1)
    monkeypatch.setattr(cost, "MOST_EPOCHS", 1)
    monkeypatch.setattr(run, "TIMED_SEEDS", 1)
    whole = cases.compose

    def compose(*words):
        return whole(*words, *(word for word in SETTING if not word.startswith("protocol=")))

    for module in (cases, trials):
        monkeypatch.setattr(module, "compose", compose)


def check(*words: str) -> tuple[int, dict]:
    code = main(["check-device", "--quick", "--device", OTHER, "-o", "found.json", *words])
    return code, json.loads(Path("found.json").read_text())


def spoil(monkeypatch, error):
    """PaGNN's aggregated input, on the other device only: G plus the next value of ``error``."""
    right = PaGNN.signal

    def wrong(self, graph, context):
        signal = right(self, graph, context)
        if str(context.device) == OTHER:
            signal.aggregated.data[0] += error()
        return signal

    monkeypatch.setattr(PaGNN, "signal", wrong)


def test_the_same_device_passes_and_says_that_this_proves_nothing_about_a_gpu(capsys):
    code, document = check()
    assert code == 0
    out, err = capsys.readouterr()
    assert "The CPU was checked against itself" in out
    assert "PASS: 3 checks of cpu:0" in out
    assert "were not found" in out, "of the committed trials"
    assert "method 2 of 2: mf, type1" in err
    [row] = document["trials"]
    assert row["cpu"] == row["device"], "to the last digit"
    assert [row["name"] for row in document["methods"]] == ["pagnn_n, type1", "mf, type1"]


def test_the_file_names_versions_and_no_place_of_this_machine():
    document = check()[1]
    assert document["machine"]["packages"]["torch"] == torch.__version__
    text = json.dumps(document)
    assert all(
        place not in text
        for place in (str(Path.cwd()), str(ROOT), str(Path.home()) + "/", os.uname().nodename)
    )


def test_a_device_that_computes_wrongly_fails(monkeypatch, capsys):
    spoil(monkeypatch, lambda: 0.01)
    code, document = check()
    assert code == 1
    assert {fault.partition(":")[0] for fault in document["faults"]} == {"pagnn_n, type1"}
    assert any("logits differ" in fault for fault in document["faults"])
    assert not any("twice" in fault for fault in document["faults"])
    assert "FAIL" in capsys.readouterr().out


def test_a_device_that_computes_otherwise_every_time_fails(monkeypatch):
    chance = itertools.count(1)
    spoil(monkeypatch, lambda: 1e-6 * next(chance))  # each alone would pass for rounding
    code, document = check()
    assert code == 1
    assert any("pagnn_n, type1: trained twice, " in fault for fault in document["faults"])


def test_trials_that_come_out_worse_fail(monkeypatch):
    again = trials.again

    def worse(known, device):
        return [{**record, "test_acc": record["test_acc"] - 0.05} for record in again(known, device)]

    monkeypatch.setattr(run, "again", worse)
    code, document = check()
    assert code == 1
    [fault] = document["faults"]
    assert "the mean differs by -5.00 points (at most 1.77)" in fault


def test_a_method_that_breaks_off_fails_and_the_others_are_checked(monkeypatch):
    def broken(*_):
        raise RuntimeError("no such\noperation there")

    monkeypatch.setattr(PaGNN, "signal", broken)
    code, document = check()
    assert code == 1
    assert document["faults"][0] == "pagnn_n, type1: RuntimeError: no such operation there"
    assert document["methods"][1]["faults"] == []


def test_a_lost_device_ends_the_check_and_keeps_what_is_finished(monkeypatch):
    observe = run.observe

    def lost(masked, preparation):
        if masked.cell.method["name"] == "mf":
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        return observe(masked, preparation)

    monkeypatch.setattr(run, "observe", lost)
    code, document = check()
    assert code == 1
    assert [row["name"] for row in document["methods"]] == ["pagnn_n, type1"]
    [fault] = document["faults"]
    assert "the device was lost" in fault
    assert "mf, type1: RuntimeError: CUDA error" in fault


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--device", "tpu"], "device=tpu: choose auto, cpu, cuda"),
        (["--device", "cuda:7"], "device=cuda:7: torch sees"),
        (["-o", "nowhere/file.json"], "-o nowhere/file.json: there is no folder nowhere."),
        (["--results", "nowhere"], "--results nowhere: there is no such folder."),
    ],
)
def test_a_wrong_request_is_refused_in_a_sentence(words, sentence, capsys):
    assert main(["check-device", *words]) == 2
    assert sentence in capsys.readouterr().err
    assert list(Path.cwd().iterdir()) == []


def test_waits_are_counted_by_epoch(monkeypatch):
    """A loop with two reads and one synchronisation per epoch, and five reads before it."""
    modes: list[object] = []
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: None)

    def loop(epochs):
        for _ in range(5 + 2 * epochs):
            warnings.warn("called a synchronizing CUDA operation", stacklevel=1)
        for _ in range(epochs):
            torch.cuda.synchronize()

    assert waits_per_epoch(loop, torch.device("cuda", 0)) == 3
    assert modes == ["warn", 0] * 2
    assert waits_per_epoch(loop, torch.device("cpu")) is None


@pytest.mark.real_data
def test_committed_trials_of_cora_are_found_where_the_data_are(real_root, monkeypatch):
    assert trials.committed(ROOT / "results") == []
    monkeypatch.setenv("PAGNN_DATA", str(real_root))
    found = trials.committed(ROOT / "results")
    assert [(known.cell.method["name"], known.cell.missing["name"]) for known in found] == list(trials.CHOSEN)
    assert all(len(known.seeds) >= 5 for known in found)
