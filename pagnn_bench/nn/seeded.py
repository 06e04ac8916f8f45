"""Code that draws from global generators, made a function of a seed.

The rest of the package hands generators around. A module of somebody else (``torch.nn.Dropout``, an initialisation of
torch_geometric) draws from torch's global generator and cannot be told otherwise, so that one is lent to it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Inside, the global generators of torch (CPU and ``device``), numpy and Python start at ``seed``.

    Afterwards they are where they were before, whatever happened inside.
    """
    gpus = [device] if device.type == "cuda" else []
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=gpus):
        torch.default_generator.manual_seed(seed)
        for gpu in gpus:
            with torch.cuda.device(gpu):
                torch.cuda.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)  # noqa: NPY002
