"""Measurements that need a separate process: peak memory never shrinks, so one process gives one number.

``python -m pagnn_bench.bench.child`` reads a task as JSON and answers with JSON in its last line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagnn_bench.config.identity import Cell
from pagnn_bench.engine.cores import set_threads

if TYPE_CHECKING:
    import torch

MEMORY_EPOCHS = 3  # the first reaches the peak; from the second on, all lasting buffers exist


class ChildError(RuntimeError):
    """A child crashed; the message is its last line of output."""


def memory_task(cell: Cell, side: str, seeds: int, inputs: str | None, **common: Any) -> dict[str, Any]:
    """Peak memory of one contender; ``inputs`` is a file with what the reference takes from a preparation."""
    return {
        "kind": "memory",
        "cell": asdict(cell),
        "side": side,
        "seeds": seeds,
        "inputs": inputs,
        **common,
    }


def growth_task(cell: Cell, seeds: int, epochs: int, **common: Any) -> dict[str, Any]:
    """Time and peak memory of our training."""
    return {"kind": "growth", "cell": asdict(cell), "seeds": seeds, "epochs": epochs, **common}


def run_child(task: Mapping[str, Any]) -> dict[str, Any]:
    """Run a task in a new process and return its answer.

    Raises:
        ChildError: it failed, or was killed (by the system, if memory ran out).
    """
    command = [sys.executable, "-m", "pagnn_bench.bench.child"]
    answer = subprocess.run(command, input=json.dumps(task), capture_output=True, text=True)
    if answer.returncode < 0:
        raise ChildError(f"was killed by signal {-answer.returncode}; too little memory?")
    if answer.returncode:
        raise ChildError((answer.stderr.strip().splitlines() or ["failed"])[-1])
    return json.loads(answer.stdout.splitlines()[-1])


def peak_mb() -> float:
    """Peak resident memory of this process in MB."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        # Not ru_maxrss: on Linux a new process inherits it from its parent.
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        import resource  # not on Windows

        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> None:
    """Do the task on stdin."""
    task = json.load(sys.stdin)
    print(json.dumps(_measure(task)))


def _measure(task: Mapping[str, Any]) -> dict[str, Any]:
    from pagnn_bench.bench.contenders import MASK, choose_epochs, our_contender, reference_contender
    from pagnn_bench.bench.speed import OURS
    from pagnn_bench.engine.device import pick_device
    from pagnn_bench.engine.prepare import graph_of, hide_mask, prepare

    set_threads(task["threads"])
    cell, cache = Cell(**task["cell"]), task.get("cache")
    graph_of(cell)
    base = peak_mb()
    device = pick_device(task["device"])
    masked = hide_mask(cell, MASK, device, cache=Path(cache) if cache else None)
    answer: dict[str, Any] = {"base_mb": round(base, 1)}
    if task["kind"] == "growth":
        preparation = prepare(masked)
        contender = our_contender(masked, preparation.prepared, task["seeds"])
        epochs = choose_epochs(contender, task["seeds"], task["epochs"])
        sample = contender(epochs)
        answer |= {"prepare_seconds": preparation.seconds, "epochs": epochs}
        answer |= {"train_ms": sample.train_ms, "eval_ms": sample.eval_ms}
    elif task["side"] == OURS:
        our_contender(masked, prepare(masked).prepared, task["seeds"])(MEMORY_EPOCHS)
    else:
        import numpy as np

        inputs = dict(np.load(task["inputs"]))
        reference_contender(masked, inputs, task["side"])(MEMORY_EPOCHS)
    return answer | {"peak_mb": round(peak_mb(), 1), **_device_memory(device)}


def _device_memory(device: torch.device) -> dict[str, float]:
    """The peak GPU memory of tensors, in MB."""
    import torch

    if device.type == "cpu":
        return {}
    return {"device_mb": round(torch.cuda.max_memory_allocated(device) / 2**20, 1)}


if __name__ == "__main__":
    main()
