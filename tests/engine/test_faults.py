"""Errors of a device, as torch words them: what is halved, what ends a process, what is an ordinary failure."""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from collections import Counter
from pathlib import Path

import pytest
import torch

from pagnn_bench.cli import main
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.sweep import compose_combinations
from pagnn_bench.engine import execute
from pagnn_bench.engine.execute import Executor
from pagnn_bench.engine.faults import free_memory, is_device_lost, is_out_of_memory
from pagnn_bench.records.store import Store
from tests.engine.failing import TRAINED, add_methods

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
ROOT = Path(__file__).parents[2]
TINY = [
    *("data=synthetic", "data.num_nodes=140", "data.train_per_class=5", "data.num_val=35", "missing=type1"),
    *("protocol=quick", "protocol.max_epochs=15", "seeds=2", "device=cpu", "threads=1"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cell_of(*words: str) -> Cell:
    [config] = compose_combinations([*words, *TINY], multirun=False)
    return Cell.from_config(config)


# -- What an error means -------------------------------------------------------------------------------------


def test_memory(monkeypatch):
    for error in (
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        torch.AcceleratorError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        MemoryError(),
    ):
        assert is_out_of_memory(error)
        assert not is_device_lost(error, CPU)
    with pytest.raises(RuntimeError) as refused:
        torch.empty(1 << 50)
    assert is_out_of_memory(refused.value), "of the CPU"
    assert not is_out_of_memory(RuntimeError("shapes do not fit"))


def test_a_lost_device(monkeypatch):
    for error in (
        torch.AcceleratorError("CUDA error: device-side assert triggered"),
        RuntimeError("CUDA error: an illegal memory access was encountered"),
        RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`"),
    ):
        assert is_device_lost(error, CPU)
        wrapped = ValueError("my method failed")
        wrapped.__cause__ = error
        assert is_device_lost(wrapped, CPU)
    assert not is_device_lost(ValueError("hidden=0"), CPU)
    assert not is_device_lost(ValueError("hidden=0"), None)


def test_an_error_of_python_before_the_gpu_has_reported_its_own(monkeypatch):
    def synchronize(device: torch.device) -> None:
        raise torch.AcceleratorError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    assert is_device_lost(ValueError("hidden=0"), GPU)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    assert not is_device_lost(ValueError("hidden=0"), GPU)


# -- A stack that does not fit -------------------------------------------------------------------------------


def fits(most: int, monkeypatch) -> list[int]:
    """Let stacks of more than ``most`` fail in their third epoch; the sizes that were tried."""
    tried, held, real = [], [], execute.train

    def train(network, graph, protocols, dropout, device, curve, on_epoch, rates, **more):
        assert all(reference() is None for reference in held), "what the last attempt held was not freed"
        tried.append(len(dropout))

        def stop(epoch, finished):
            if len(dropout) > most and epoch == 3:
                raise torch.OutOfMemoryError("CUDA out of memory.")
            on_epoch(epoch, finished)

        if len(dropout) > most:
            network.__dict__["itself"] = network  # so that only free_memory can free it
        held.append(weakref.ref(network))
        return real(network, graph, protocols, dropout, device, curve, stop, rates, **more)

    monkeypatch.setattr(execute, "train", train)
    return tried


def test_the_stack_is_halved_and_the_size_remembered(monkeypatch):
    cell, other = cell_of("method=zero"), cell_of("method=mf")
    whole = Executor(CPU, 1).run(cell, 0, range(7))
    executor, tried = Executor(CPU, 1), fits(2, monkeypatch)
    halved = executor.run(cell, 0, range(7))
    assert tried == [7, 3, 1, 1, 1, 1, 1, 1, 1]
    assert halved.note == "zero on synthetic: 3 trials at once do not fit into memory; continuing with 1."
    assert halved.facts["stack"] == 1
    assert halved.facts["prepare_seconds"] <= halved.facts["total_seconds"], "prepared once"
    assert halved.facts["seed_epochs"] == sum(record["epochs"] for record in halved.records)
    for before, after in zip(whole.records, halved.records):
        assert after == pytest.approx(before, abs=1e-4), "the same trials in smaller stacks"
    tried.clear()
    again = executor.run(cell, 1, range(3))
    assert (tried, again.note) == ([1, 1, 1], "")
    tried.clear()
    executor.run(other, 0, range(2))
    assert tried == [2], "another method may need less"


def test_a_gpu_gets_back_what_torch_keeps(monkeypatch):
    emptied = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append("GPU"))
    free_memory(CPU)
    assert emptied == []
    free_memory(GPU)
    assert emptied == ["GPU"]


def test_a_stack_of_one_is_a_failure(monkeypatch):
    fits(0, monkeypatch)
    with pytest.raises(torch.OutOfMemoryError):
        Executor(CPU, 1).run(cell_of("method=zero"), 0, range(4))


def test_a_preparation_that_does_not_fit_is_not_tried_in_halves(monkeypatch):
    tried = []

    def prepare(masked):
        tried.append(masked)
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(execute, "prepare", prepare)
    with pytest.raises(torch.OutOfMemoryError):
        Executor(CPU, 1).run(cell_of("method=zero"), 0, range(4))
    assert len(tried) == 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_halves_through_the_command(folder, capfd, n_jobs):
    words = [
        "run",
        "-m",
        *add_methods(folder),
        *TINY,
        "method=hungry",
        "masks=2",
        "seeds=4",
        f"n_jobs={n_jobs}",
    ]
    assert main(words) == 0
    err = capfd.readouterr().err
    assert err.count("hungry on synthetic: 4 trials at once do not fit into memory; continuing with 2.") == 1
    store = Store("results")
    [cell] = store.cells()
    trials = store.load(cell).values()
    assert (len(trials), {trial.batch.facts["stack"] for trial in trials}) == (8, {2})


def test_the_failure_of_one_trial_has_a_hint(folder, monkeypatch, capsys):
    monkeypatch.setattr("tests.engine.failing.FITS", 0)
    assert main(["run", *add_methods(folder), *TINY, "method=hungry", "masks=1", "n_jobs=1"]) == 1
    store = Store("results")
    [failure] = [failure for cell in store.cells() for failure in store.failures(cell)]
    assert failure.error == (
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. Not even one trial fits: try device=cpu or "
        "a smaller method.hidden, or stop other programs."
    )


# -- A device that is lost -----------------------------------------------------------------------------------


def begun() -> list[tuple[str, str]]:
    """(process, fate) of every batch, in order."""
    return [tuple(line.split()) for line in TRAINED.read_text().splitlines()]


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    arguments = ["run", *add_methods(folder), *TINY, "method=poisoned", "masks=6", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "pagnn_bench", *arguments], env=environment, capture_output=True, text=True
    )


def kept() -> tuple[int, list[tuple[int, str]]]:
    """Trials that succeeded, and the failures as (mask, error)."""
    store = Store("results")
    [cell] = store.cells()
    good = sum(trial.ok for trial in store.load(cell).values())
    return good, [(failure.mask, failure.error) for failure in store.failures(cell)]


def test_one_process_stops_the_sweep(folder, capsys):
    words = ["run", *add_methods(folder), *TINY, "method=poisoned", "n_jobs=1"]
    assert main([*words, "masks=1"]) == 0
    Path("poison").touch()
    capsys.readouterr()
    assert main([*words, "masks=3"]) == 1
    message = capsys.readouterr().err
    assert "mask 1: AcceleratorError: CUDA error: device-side assert triggered" in message
    assert "the sweep stops" in message
    assert [fate for _, fate in begun()] == ["fine", "lost"], "nothing is tried after it"
    assert kept() == (2, [(1, "AcceleratorError: CUDA error: device-side assert triggered")])
    assert main([*words, "masks=3"]) == 0
    assert kept()[0] == 6


def test_a_search_stops_as_well(folder, capsys):
    Path("poison").touch()
    search = ["protocol=tuned", "protocol.max_epochs=5", "masks=1", "n_jobs=1"]
    words = ["run", *add_methods(folder), *TINY, "method=poisoned", *search]
    assert main([word for word in words if word not in ("protocol=quick", "protocol.max_epochs=15")]) == 1
    assert [fate for _, fate in begun()] == ["lost"]


def test_only_the_worker_at_fault_ends(folder):
    Path("poison").touch()
    done = command(folder, "n_jobs=2")
    assert done.returncode == 1, done.stderr
    good, failures = kept()
    assert good == 10, "five of six masks"
    assert [error for _, error in failures] == ["AcceleratorError: CUDA error: device-side assert triggered"]
    processes = begun()
    assert Counter(fate for _, fate in processes) == {"fine": 5, "lost": 1}
    [(lost, at)] = [(process, k) for k, (process, fate) in enumerate(processes) if fate == "lost"]
    assert all(process != lost for process, _ in processes[at + 1 :]), "it trains nothing after that"
    assert "Traceback" not in done.stderr
