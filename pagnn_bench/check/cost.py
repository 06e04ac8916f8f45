"""The cost of training on a device: times, waits of the host, memory."""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from pagnn_bench.bench.child import ChildError, growth_task, run_child
from pagnn_bench.bench.contenders import Contender, choose_epochs
from pagnn_bench.check.cases import AMACOMP, compose
from pagnn_bench.config.text import one_line

ROUNDS = 3
MOST_EPOCHS = 5
FEW, MANY = 2, 12  # epochs; their difference excludes one-time waits
# On a graph of AmaComp's size. GCNmf's tensors are the largest of all methods.
LARGE_METHODS = ("pagnn_n", "mf", "gcnmf")
LARGE_EPOCHS = 5
# Numbers of seeds, tried in turn until one fits, as in a sweep. Twenty would take a CPU a minute.
STACKS = {"cuda": (20, 1), "cpu": (1,)}


def epoch_ms(contenders: Sequence[Contender], seeds: int) -> list[float]:
    """For each contender, the milliseconds per epoch of one seed, including evaluation: the median of the rounds."""
    epochs = [choose_epochs(run, seeds, MOST_EPOCHS) for run in contenders]
    rounds = []
    for _ in range(ROUNDS):
        samples = [run(number) for run, number in zip(contenders, epochs)]
        rounds.append([sample.train_ms + sample.eval_ms for sample in samples])
    return [statistics.median(times) for times in zip(*rounds)]


def waits_per_epoch(run: Callable[[int], Any], device: torch.device) -> float | None:
    """How often an epoch makes the host wait for the GPU, as far as torch reports it; None on a CPU.

    Args:
        run: trains for a number of epochs.
        device: where.
    """
    if device.type != "cuda":
        return None
    return (_waits(run, MANY) - _waits(run, FEW)) / (MANY - FEW)


def _waits(run: Callable[[int], Any], epochs: int) -> int:
    """Waits that torch warns of in its debug mode, and calls of ``synchronize``, of which it does not."""
    synchronize, calls = torch.cuda.synchronize, []

    def counted(device: Any = None) -> None:
        calls.append(device)
        synchronize(device)

    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.synchronize = counted
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            run(epochs)
    finally:
        torch.cuda.set_sync_debug_mode(before)
        torch.cuda.synchronize = synchronize
    return len(calls) + sum("synchroniz" in str(warning.message) for warning in caught)


def on_large_graph(method: str, device: torch.device, threads: int) -> dict[str, Any]:
    """Times and peak memory on a graph of AmaComp's size, in a separate process, with as many seeds at once as fit.

    Returns:
        ``seeds``, ``prepare_seconds``, ``train_ms``, ``eval_ms``, ``peak_mb`` and ``base_mb`` of the process,
        ``device_mb`` of a GPU; or ``error``.
    """
    cell = compose(*AMACOMP, f"method={method}")
    for seeds in STACKS[device.type]:
        task = growth_task(cell, seeds, LARGE_EPOCHS, threads=threads, device=str(device))
        try:
            return {"seeds": seeds, **run_child(task)}
        except ChildError as error:
            reason = one_line(str(error))
    return {"error": reason}
