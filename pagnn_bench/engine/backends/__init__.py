"""Where batches are trained: this machine, a Slurm cluster, Ray or Dask. Each is imported only when chosen."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pagnn_bench.config.errors import refuse
from pagnn_bench.config.schema import (
    FLAG,
    NOT_NEGATIVE,
    POSITIVE,
    TEXT,
    Schema,
    Valid,
    check_group,
    one_of,
    or_null,
    whole,
)
from pagnn_bench.engine.backends.base import Backend
from pagnn_bench.engine.plan import Settings


@dataclass(frozen=True)
class Entry:
    """A registered backend.

    Attributes:
        opener: ``module:function`` that creates it from the settings of a command.
        keys: the keys of ``conf/backend/<name>.yaml``.
        here: whether it trains on this machine, which must then have the requested device.
    """

    opener: str
    keys: Schema = field(default_factory=dict)
    here: bool = False


_SBATCH = Valid(lambda value: isinstance(value, Mapping), "give options of sbatch, such as {account: mine}")

BACKENDS = {
    "local": Entry("pagnn_bench.engine.backends.local:LocalBackend", here=True),
    "dask": Entry(
        "pagnn_bench.engine.backends.dask:DaskBackend",
        {"address": or_null(TEXT), "timeout": POSITIVE, "shared_storage": FLAG},
    ),
    "ray": Entry(
        "pagnn_bench.engine.backends.ray:RayBackend",
        {
            "address": or_null(TEXT),
            "cpus": POSITIVE,
            "gpus": NOT_NEGATIVE,
            "retries": whole(0),
            "shared_storage": FLAG,
        },
    ),
    "slurm": Entry(
        "pagnn_bench.engine.backends.slurm:SlurmBackend",
        {
            "cluster": one_of(("slurm", "local")),
            "batches_per_job": whole(1),
            "array_size": whole(1),
            "parallel": whole(1),
            "minutes": whole(1),
            "cpus": whole(1),
            "gpus": whole(0),
            "memory_gb": POSITIVE,
            "partition": or_null(TEXT),
            "more": _SBATCH,
        },
    ),
}


def check_backend(config: Any) -> Entry:
    """The entry of a ``backend`` group; refuses an unknown name, key or value before connecting to anything."""
    name = config.get("name") if isinstance(config, Mapping) else config
    entry = BACKENDS[one_of(BACKENDS).check("backend", name)]
    check_group("backend", config, entry.keys, f"backend={name}")
    return entry


def with_device(settings: Settings) -> Settings:
    """The settings with the device that a cluster grants: ``auto`` is the GPU that a job was given, else the CPU.

    Ray and Slurm may let a job see GPUs that were not granted to it; all jobs would then use the first one. A job whose
    GPU is broken must not silently train on the CPU instead.
    """
    gpus = settings.backend.get("gpus")
    if gpus == 0 and str(settings.device).startswith("cuda"):
        refuse("backend.gpus", 0, f"device={settings.device} needs backend.gpus=1, or device=cpu")
    if gpus is None or settings.device != "auto":
        return settings
    return replace(settings, device="cuda" if gpus else "cpu")


def open_backend(settings: Settings) -> Backend:
    """Connect to the chosen backend; refuses a wrong address before anything is written."""
    module, _, opener = check_backend(settings.backend).opener.partition(":")
    backend: Backend = getattr(importlib.import_module(module), opener)(settings)
    return backend
