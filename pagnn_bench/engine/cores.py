"""How many cores and threads to train with."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Cores that this process may use: fewer than the machine has if a batch system or a container limits them."""
    import joblib  # slow to import, and only needed for training

    return joblib.cpu_count()


def granted_cores() -> int:
    """Usable cores, but no more than OMP_NUM_THREADS if it is set: that limit is meant for the whole command."""
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    return min(usable_cores(), int(limit)) if limit.isdecimal() and int(limit) > 0 else usable_cores()


def set_threads(threads: int | None) -> int:
    """Set the number of torch's CPU threads and return it.

    Args:
        threads: None for torch's own choice (OMP_NUM_THREADS, or the cores of the whole machine), but no more than
            there are usable cores: in a container, more threads would hinder each other.
    """
    import torch

    torch.set_num_threads(threads or min(torch.get_num_threads(), usable_cores()))
    return torch.get_num_threads()
