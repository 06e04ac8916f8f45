"""What an error of a device means: too little memory, which a smaller stack mends, or a device that is lost."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import torch

# Where torch raises a RuntimeError of no particular kind, its words tell.
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
    """Whether there was too little memory, on the GPU or on the machine; the process can go on."""
    return any(
        isinstance(each, torch.OutOfMemoryError | MemoryError)
        or any(words in str(each) for words in OUT_OF_MEMORY)
        for each in _chain(error)
    )


def is_device_lost(error: BaseException, device: torch.device | None) -> bool:
    """Whether the process can use its GPU no more: after such an error every call fails, whatever it asks for.

    Kernels run behind the program's back: an error of Python may come before the report of a kernel that failed. So
    after any error the GPU is asked whether all is well.

    Args:
        error: what a batch ended with.
        device: where it was trained; None if it did not come so far.
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
    """Give back what nobody holds any more. To be called outside the ``except``: the error holds what failed."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, and those that it came from."""
    seen: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in seen:
        yield each
        seen.append(each)
        each = each.__cause__ or each.__context__
