"""The keys of ``backend.*``, looked at before anything is submitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pagnn_bench.config.errors import RequestError


def _whole(least: int) -> tuple[Callable[[Any], bool], str]:
    return lambda value: type(value) is int and value >= least, f"give a whole number of at least {least}"


def _number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < float("inf")


_TEXT = (lambda value: value is None or isinstance(value, str)), "give a text, or null"
_FLAG = (lambda value: isinstance(value, bool)), "choose true or false"
_AMOUNT = _number, "give a number not below 0"
_POSITIVE = (lambda value: _number(value) and value > 0), "give a number above 0"

# What conf/backend/*.yaml has, key by key: whether a value will do, and what to give instead.
OPTIONS: dict[str, dict[str, tuple[Callable[[Any], bool], str]]] = {
    "local": {},
    "dask": {"address": _TEXT, "timeout": _POSITIVE, "shared_storage": _FLAG},
    "ray": {
        "address": _TEXT,
        "cpus": _POSITIVE,
        "gpus": _AMOUNT,
        "retries": _whole(0),
        "shared_storage": _FLAG,
    },
    "slurm": {
        "cluster": ((lambda value: value in ("slurm", "local")), "choose slurm or local"),
        "batches_per_job": _whole(1),
        "array_size": _whole(1),
        "parallel": _whole(1),
        "minutes": _whole(1),
        "cpus": _whole(1),
        "gpus": _whole(0),
        "memory_gb": _POSITIVE,
        "partition": _TEXT,
        "more": (
            (lambda value: isinstance(value, Mapping)),
            "give options of sbatch, such as {account: mine}",
        ),
    },
}


def check_options(backend: Any) -> None:
    """Refuse a ``backend`` group with a key too many or too few, or a value of the wrong kind."""
    name = backend.get("name") if isinstance(backend, Mapping) else backend
    if name not in list(OPTIONS):
        raise RequestError(f"backend={name}: choose one of {', '.join(OPTIONS)}.")
    for key in sorted(OPTIONS[name].keys() - backend.keys()):
        raise RequestError(
            f"backend.{key}: {name} needs it; choose with backend={name}, which brings all keys."
        )
    for key in sorted(backend.keys() - OPTIONS[name].keys() - {"name", "description"}):
        raise RequestError(f"backend.{key}={backend[key]}: {name} has no such key.")
    for key, (will_do, instead) in OPTIONS[name].items():
        if not will_do(backend[key]):
            raise RequestError(f"backend.{key}={backend[key]}: {instead}.")
