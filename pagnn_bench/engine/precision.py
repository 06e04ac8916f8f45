"""Whether bfloat16 saves time on a device or costs time."""

from __future__ import annotations

import statistics
import time
import warnings
from functools import cache

import torch

from pagnn_bench.training.clock import wait_for

SIZE = (2048, 512, 64)  # rows, attributes, hidden units of the measured product: about 50 ms in total
ROUNDS = 5


@cache  # once per process
def warn_if_emulated(device: torch.device) -> None:
    """Warn, with the measured ratio, if the device only emulates bfloat16; the numbers are the same."""
    if _is_native(device):
        return
    ratio = time_ratio(device)
    warnings.warn(
        f"precision=bfloat16: {device} has no arithmetic for it; a product takes {ratio:.1f} times as long as in "
        "float32, measured just now. precision=float32 is likely faster here.",
        stacklevel=2,
    )


def _is_native(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def time_ratio(device: torch.device) -> float:
    """The time of a dense product in bfloat16 over that in float32, each the median of alternating rounds."""
    rows, attributes, hidden = SIZE
    factors = torch.ones(rows, attributes, device=device), torch.ones(attributes, hidden, device=device)
    narrow = tuple(factor.bfloat16() for factor in factors)
    seconds: list[tuple[float, float]] = []
    for _ in range(ROUNDS + 1):
        seconds.append((_seconds(*factors), _seconds(*narrow)))
    wide, short = (statistics.median(kind) for kind in zip(*seconds[1:]))  # the first round warms up
    return short / wide


def _seconds(a: torch.Tensor, b: torch.Tensor) -> float:
    start = time.perf_counter()
    product = a @ b
    wait_for(product.device)
    return time.perf_counter() - start
