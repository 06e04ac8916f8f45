"""Code that draws from global generators, made a function of a seed.

The rest of the package passes generators around. Third-party modules (``torch.nn.Dropout``, an initialisation of
torch_geometric) can only draw from torch's global generator, so this lends it to them.
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

    Afterwards they are restored, whatever happened inside.
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
