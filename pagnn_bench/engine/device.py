"""Choose the device for training. A GPU counts only after a test computation; messages name those that fail it.

Torch may see a GPU that it cannot use: the driver may be too old for the build of torch, or the build too new for the
card. Only :func:`fault` and :func:`pick_device` open a GPU.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

import torch

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.schema import DEVICE
from pagnn_bench.config.text import count
from pagnn_bench.records.provenance import nvidia_driver

logger = logging.getLogger(__name__)

# TF32 keeps 10 of 23 bits of every factor. Torch leaves it on for convolutions, but our records promise that it is off.
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False

# Part of torch's message when the test computation fails → what to do about it.
SEE = "docs/gpu.md says how"
ADVICE = {
    "driver on your system is too old": f"update the driver, or install a torch built for an older CUDA ({SEE})",
    "driver version is insufficient": f"update the driver, or install a torch built for an older CUDA ({SEE})",
    "no kernel image": f"install a torch build that still supports this card ({SEE})",
    "out of memory": "stop other programs that use its memory",
    "busy or unavailable": "stop other programs that use it",
    "": "check that `nvidia-smi` lists the GPU",
}


def candidates(name: str) -> list[int]:
    """The indices of the GPUs that ``device=`` allows: none for the CPU, all visible ones for ``auto`` and ``cuda``."""
    DEVICE.check("device", name)
    if name != "auto":
        device = torch.device(name)
        if device.type == "cpu" or device.index is not None:
            return [] if device.type == "cpu" else [device.index]
    return list(range(torch.cuda.device_count()))


@cache
def fault(index: int) -> str | None:
    """Why this process cannot use a GPU, None if it can. Opens the GPU, so never call it before a fork."""
    seen = torch.cuda.device_count()
    if index >= seen:
        return f"torch sees {count(seen, 'GPU') if seen else 'no GPU'} here"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on old cards and drivers, which our message covers
            _compute(torch.device("cuda", index))
    except Exception as error:  # torch raises various types when it opens a GPU
        [reason, *_] = str(error).strip().splitlines() or [type(error).__name__]
        return f"cuda:{index} cannot be used: {reason.partition('. ')[0].rstrip('.')}"
    return None


def _compute(device: torch.device) -> None:
    """Compute 2 + 2 with a kernel, cuBLAS and cuSPARSE."""
    one = torch.eye(2, device=device)
    total = (one.to_sparse_csr() @ (one @ (one + one))).sum().item()
    if total != 4:
        raise RuntimeError(f"2 + 2 is {total:g} there")


def settle(name: str, faults: Mapping[int, str | None]) -> list[int]:
    """The indices of the GPUs to train on; none means the CPU.

    Without a working GPU, ``device=auto`` means the CPU, with a warning if the machine has an NVIDIA driver; other GPU
    names are refused.

    Args:
        name: the value of ``device=``.
        faults: for each tested candidate, why it cannot be used, or None.
    """
    working = [index for index, reason in faults.items() if reason is None]
    broken = [reason for reason in faults.values() if reason is not None]
    if working:
        for reason in broken:
            logger.warning("device=%s: %s; continuing without it.", name, reason)
        return working
    if name != "auto" and torch.device(name).type == "cpu":
        return []
    sentence = _sentence(broken[0] if broken else "torch sees no GPU here")
    if name != "auto":
        raise RequestError(f"device={name}: {sentence}, or give device=cpu.")
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")  # on purpose
    if broken or (nvidia_driver() and not hidden):
        logger.warning(
            "device=auto: training on the CPU, because %s; device=cpu hides this warning.", sentence
        )
    return []


def _sentence(reason: str) -> str:
    """The reason, torch's build, the driver, and advice."""
    build, driver = torch.version.cuda or torch.version.hip, nvidia_driver()
    if build is None:
        advice = f"install a CUDA build ({SEE})"
    elif driver is None:
        advice = "install the driver of the GPU"
    else:
        advice = next(what for words, what in ADVICE.items() if words in reason)
    kind = "a CPU build" if build is None else f"built for {'CUDA' if torch.version.cuda else 'ROCm'} {build}"
    found = f"NVIDIA driver {driver}" if driver else "no NVIDIA driver found"
    return f"{reason} (torch {torch.__version__} is {kind}; {found}): {advice}"


@cache
def pick_device(name: str) -> torch.device:
    """The device for this process: the first candidate that computes, which becomes torch's current GPU."""
    faults: dict[int, str | None] = {}
    for index in candidates(name):
        faults[index] = fault(index)
        if faults[index] is None:
            break
    working = settle(name, faults)
    if not working:
        return torch.device("cpu" if name == "auto" else name)
    torch.cuda.set_device(working[0])
    return torch.device("cuda", working[0])


@cache
def device_facts(device: torch.device) -> dict[str, Any]:
    """A device as recorded; a GPU with its name, driver, libraries and TF32 setting."""
    if device.type == "cpu":
        return {"device": str(device)}
    gpu = {
        "name": torch.cuda.get_device_name(device),
        "driver": nvidia_driver(),
        "cuda": torch.version.cuda or torch.version.hip,
        "cudnn": torch.backends.cudnn.version(),
        "tf32": torch.backends.cuda.matmul.allow_tf32,
    }
    return {"device": str(device), "gpu": gpu}
