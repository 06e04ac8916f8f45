"""What a device error means: out of memory, which a smaller stack solves, or a lost device."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import torch

# Where torch raises a plain RuntimeError, its message tells the kind.
OUT_OF_MEMORY = (
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "DefaultCPUAllocator: can't allocate",
)
LOST = ("CUDA error", "device-side assert", "CUDA driver error", "cuDNN error", "HIP error")
_LOST_TYPES: tuple[type[BaseException], ...] = tuple(
    kind
    for kind in [getattr(torch, "AcceleratorError", None)]
    if kind  # torch 2.8 and later
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the GPU or the machine ran out of memory; the process can continue."""
    return any(
        isinstance(each, torch.OutOfMemoryError | MemoryError)
        or any(words in str(each) for words in OUT_OF_MEMORY)
        for each in _chain(error)
    )


def is_device_lost(error: BaseException, device: torch.device | None) -> bool:
    """Whether the process can no longer use its GPU: after such an error, every call fails.

    Kernels run asynchronously: a Python error may precede the report of a failed kernel. So any error is followed by a
    check of the GPU.

    Args:
        error: what ended the batch.
        device: where it was trained; None if training did not start.
    """
    if is_out_of_memory(error):
        return False
    if any(
        isinstance(each, _LOST_TYPES) or any(words in str(each) for words in LOST) for each in _chain(error)
    ):
        return True
    if device is None or device.type != "cuda":
        return False
    try:
        torch.cuda.synchronize(device)
    except RuntimeError:
        return True
    return False


def free_memory(device: torch.device) -> None:
    """Free unused memory. Call it outside the ``except`` block, since the error still refers to the failed tensors."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes."""
    seen: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in seen:
        yield each
        seen.append(each)
        each = each.__cause__ or each.__context__
