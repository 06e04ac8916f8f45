"""The command itself: what it asks for, what it refuses, and a measurement that is over in seconds."""

from __future__ import annotations

import json

import pytest
import torch

from pagnn_bench.bench import child, growth, parallel
from pagnn_bench.bench.child import ChildError, growth_task, memory_task, peak_mb, run_child
from pagnn_bench.bench.contenders import Sample, choose_epochs
from pagnn_bench.bench.document import load_document
from pagnn_bench.bench.growth import Size, slope
from pagnn_bench.bench.speed import CSR, OURS, PLAIN, rows_of
from pagnn_bench.cli import main
from tests.bench.common import CPU, small_cell

RUN_SWEEP = parallel.run_sweep
QUICK = [
    "bench",
    "--data",
    "synthetic",
    "--epochs",
    "3",
    "--repeats",
    "2",
    "--threads",
    "1",
    "--device",
    "cpu",
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_measurement(folder, capsys):
    words = ["--methods", "pagnn_n,mlp", "--seeds", "2,1", "--no-memory", "-o", "speed.json"]
    assert main([*QUICK, *words, "--figure", "speed.svg"]) == 0
    document = load_document(folder / "speed.json")
    rows = rows_of(document)
    assert [(row.method, row.side, row.seeds) for row in rows] == [
        ("pagnn_n", PLAIN, 1),
        ("pagnn_n", CSR, 1),
        ("pagnn_n", OURS, 1),
        ("pagnn_n", OURS, 2),
        ("mlp", OURS, 1),
        ("mlp", OURS, 2),
    ]
    for row in rows:
        assert len(row.train_ms) == len(row.eval_ms) == 2
        assert min(row.repeats) > 0
        assert row.epochs == 3
        assert (row.prepare_seconds is None) == (row.side != OURS)
        assert row.peak_mb is None
    [place] = document["places"]
    assert (place["label"], place["nodes"], place["features"]) == ("Synthetic", 1000, 300)
    machine = document["machine"]
    assert {"cpu", "usable_cores", "memory_gb", "packages", "git", "time"} <= machine.keys()
    assert machine["threads"] == 1
    assert "/" not in json.dumps(document["settings"])  # no place on this machine
    captured = capsys.readouterr()
    assert "### Speed" in captured.out
    assert "round 2 of 2, 6 contenders" in captured.err
    assert (folder / "speed.svg").exists()
    assert not list(folder.glob(".*.tmp"))


def test_both_precisions_of_a_method_stand_together(folder, capsys):
    words = ["--methods", "mf,mlp", "--seeds", "1", "--no-memory", "--reference", "plain", "-o", "speed.json"]
    assert main([*QUICK, *words, "--precision", "float32,bfloat16"]) == 0
    assert [
        (row.method, row.side, row.precision) for row in rows_of(load_document(folder / "speed.json"))
    ] == [
        ("mf", PLAIN, "float32"),
        ("mf", OURS, "float32"),
        ("mf", OURS, "bfloat16"),
        ("mlp", OURS, "float32"),
        ("mlp", OURS, "bfloat16"),
    ]
    assert " bfloat16 |" in capsys.readouterr().out


SWEEP = ["bench", "--parallel", "--methods", "zero", "--threads", "2", "--repeats", "1"]


def test_throughput_of_a_sweep(folder, capsys, monkeypatch):
    """Real commands on a graph of the smallest size; the table's ratios are those of the seconds."""
    small = [
        "data.num_nodes=350",
        "data.num_features=80",
        "data.num_val=70",
        "protocol.max_epochs=3",
        "seeds=2",
    ]
    monkeypatch.setattr(parallel, "run_sweep", lambda words, cores: RUN_SWEEP([*words, *small], cores))
    assert main([*SWEEP, "-o", "parallel.json"]) == 0
    document = load_document(folder / "parallel.json")
    rows = {row["way"]: row for row in document["rows"]}
    assert [(row["n_jobs"], row["threads"], row["trials"]) for row in rows.values()] == [
        (1, 1, 8),
        ("auto", 1, 8),
        ("auto", 1, 8),
    ]
    gain = rows[parallel.ONE]["seconds"][0] / rows[parallel.DEFAULT]["seconds"][0]
    assert f"{gain:.2f} times faster" in capsys.readouterr().out
    assert main(["bench", "--show", "parallel.json"]) == 0


def test_a_sweep_that_differs_or_breaks_off_is_an_error(folder, capsys, monkeypatch):
    def sweeps(*accuracies):
        answers = iter(accuracies)
        monkeypatch.setattr(
            parallel, "run_sweep", lambda words, cores: (1.0, {("cell", 0, 0): next(answers)})
        )

    sweeps(0.8, 0.8, 0.75)
    assert main(SWEEP) == 2
    assert "beside neighbours: the accuracy of a trial is 5.0 points from" in capsys.readouterr().err
    sweeps(0.8, 0.8, 0.8, 0.8, 0.7)
    assert main([*SWEEP[:-1], "2"]) == 1
    captured = capsys.readouterr()
    assert "default: the accuracy of a trial is 10.0 points from" in captured.err
    assert "### Throughput" in captured.out
    monkeypatch.setattr(
        parallel, "run_sweep", lambda words, cores: RUN_SWEEP([*words, "data.num_val=0"], cores)
    )
    assert main(SWEEP) == 2
    assert "a sweep failed" in capsys.readouterr().err


def test_peak_memory_is_that_of_a_process_of_its_own(folder):
    """This process is larger by all that the other tests have left in it; a child must not inherit that."""
    words = ["--methods", "mf", "--seeds", "1", "--reference", "plain", "-o", "memory.json"]
    assert main([*QUICK[:-4], *words, "--threads", "1", "--repeats", "1"]) == 0
    plain, ours = rows_of(load_document(folder / "memory.json"))
    for row in (plain, ours):
        assert row.base_mb is not None
        assert 50 < row.base_mb < row.peak_mb
    assert peak_mb() > 50


def test_the_memory_of_a_gpu_is_measured_with_either_task(monkeypatch):
    """The GPU is made up; what trains is the CPU."""
    memory, cell = child._device_memory, small_cell("mf", "type1")
    assert memory(CPU) == {}
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 321.4 * 2**20)
    monkeypatch.setattr(child, "_device_memory", lambda device: memory(torch.device("cuda", 0)))
    where = {"threads": 1, "device": "cpu"}
    for task in (growth_task(cell, 1, 1, **where), memory_task(cell, OURS, 1, None, **where)):
        assert child._measure(task)["device_mb"] == 321.4


def test_a_child_that_fails_says_why():
    with pytest.raises(ChildError, match="KeyError: 'threads'"):
        run_child({"kind": "memory"})


def test_a_slow_contender_gets_fewer_epochs():
    asked = []

    def contender(epochs: int) -> Sample:
        asked.append(epochs)
        return Sample(train_ms=40.0, eval_ms=10.0)

    assert choose_epochs(contender, seeds=1, most=100) == 20  # of 50 ms: a slice of a second
    assert choose_epochs(contender, seeds=20, most=100) == 3
    assert choose_epochs(contender, seeds=1, most=7) == 7
    assert choose_epochs(contender, seeds=20, most=2) == 2
    assert asked[:2] == [1, 2]


SENTENCES = {
    ("--data", "kora"): "--data kora: kora is not one of amacomp,",
    ("--methods", "pagnn_n,"): "--methods pagnn_n,: an empty name is not one of ",
    ("--missing", "type3"): "--missing type3: type3 is not one of biased,",
    ("--seeds", "1,0"): "--seeds 0: give whole numbers of at least 1.",
    ("--seeds", "x"): "--seeds x: give whole numbers of at least 1.",
    ("--repeats", "-1"): "--repeats -1: give whole numbers of at least 1.",
    ("--rate", "1"): "--rate 1: give a number from 0",
    ("--rate", "half"): "--rate half: give a number from 0",
    ("--reference", "dense"): "--reference dense: dense is not one of plain, csr.",
    ("--growth", "--axes", "time"): "--axes time: time is not one of nodes,",
    ("--growth", "--methods", "mf,zero"): "--growth: measures one method",
    ("--results", "nowhere"): "--results nowhere: there is no such folder.",
    ("--growth", "--show", "speed.json"): "not allowed with argument",
    ("-o", "nowhere/x.json"): "-o nowhere/x.json: there is no folder nowhere.",
    ("--figure", "x.gif"): "--figure x.gif: the name ends in one of .svg, .pdf, .png.",
    ("--precision", "half"): "--precision half: half is not one of float32, bfloat16.",
    ("--parallel", "--precision", "float32,bfloat16"): "--parallel: measures one precision at a time.",
    ("--device", "tpu"): "device=tpu: choose auto, cpu, cuda",
    ("--methods", "sat", "--missing", "type2"): "none of them is defined for missing=type2",
    ("--nothing",): "unrecognized arguments: --nothing",
}


@pytest.mark.parametrize(("words", "sentence"), SENTENCES.items())
def test_a_wrong_request_is_refused_in_one_sentence(words, sentence, capsys, folder):
    assert main([*QUICK, *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_the_slope_of_a_power_law_is_its_power(power):
    values = [10.0, 30.0, 100.0, 1000.0]
    assert slope(values, [7 * value**power for value in values]) == pytest.approx(power)
    assert slope([5, 5], [1, 2]) is None


def test_the_axes_reach_what_was_asked_for():
    sizes = [size for points in growth.AXES.values() for size in points]
    largest = max(sizes, key=lambda size: size.nodes)
    assert (largest.nodes, largest.edges) == (200_000, 2_000_000)
    for name, points in growth.AXES.items():
        values = [getattr(size, name) for size in points]
        assert values == sorted(set(values))


def test_growth(folder, capsys, monkeypatch):
    monkeypatch.setattr(growth, "AXES", {"nodes": [Size(nodes=300), Size(nodes=600)]})
    words = ["--growth", "--axes", "nodes", "-o", "growth.json", "--figure", "growth.svg"]
    assert main([*QUICK, *words, "--repeats", "1"]) == 0
    points = load_document(folder / "growth.json")["points"]
    assert [(point["value"], point["nodes"], point["edges"]) for point in points] == [
        (300, 300, 3000),
        (600, 600, 6000),
    ]
    assert all(len(point[key]) == 1 for point in points for key in growth.MEASURED)
    assert all(0 < point["base_mb"][0] <= point["peak_mb"][0] for point in points)
    table = capsys.readouterr().out
    assert "nodes (1,000 features, 16 hidden, 1 seeds)" in table
    assert "| slope " in table
    assert (folder / "growth.svg").exists()


def test_a_broken_round_keeps_those_before(folder, capsys, monkeypatch):
    monkeypatch.setattr(growth, "AXES", {"seeds": [Size(), Size(seeds=2)]})
    answers = [{"epochs": 3, **dict.fromkeys(growth.MEASURED, value)} for value in (2.0, 4.0)]

    def broken(task):
        if not answers:
            raise ChildError("was killed by signal 9; too little memory?")
        return answers.pop(0)

    monkeypatch.setattr(growth, "run_child", broken)
    assert main([*QUICK, "--growth", "-o", "growth.json"]) == 1
    assert "too little memory" in capsys.readouterr().err
    points = load_document(folder / "growth.json")["points"]
    assert [point["train_ms"] for point in points] == [[2.0], [8.0]]  # an epoch of both seeds
