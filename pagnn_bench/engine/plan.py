"""What is requested, what of it is already done, and the batches that are left, in the order to run them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import Cell, parse_indices
from pagnn_bench.config.schema import DEVICE, FLAG, Schema, Valid, check_values, or_auto, or_null, whole
from pagnn_bench.records.store import Store

MAX_THREADS = 1024  # with a hundred thousand, torch crashes

# The keys that say what to run; all others say how.
REQUEST_KEYS = frozenset({"method", "data", "missing", "protocol", "rate", "masks", "seeds", "experiment"})
SETTINGS: Schema = {
    "results_dir": Valid(lambda value: value not in (None, ""), "give the name of a folder"),
    "device": DEVICE,  # whether or not this machine has it
    "stack": whole(1),
    "n_jobs": or_auto(whole(1)),
    "threads": or_null(whole(1, MAX_THREADS)),
    "force": FLAG,
    "train_curve": FLAG,
    "cache": FLAG,
    "dry_run": FLAG,
    "tensorboard": Valid(
        lambda value: not isinstance(value, bool) and value != "", "give the name of a folder"
    ),
}


@dataclass(frozen=True)
class Request:
    """One cell and its requested trials, as (mask, seed)."""

    cell: Cell
    trials: frozenset[tuple[int, int]]

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Request:
        groups = ("method", "data", "missing", "protocol")
        _need(config, groups)
        for group in groups:
            if "name" not in (config[group] or {}):  # from a file that is only part of a choice
                raise RequestError(
                    f"{group}: choose one of `pagnn-bench list {group}`, or give your file a `name:`."
                )
        _need(config, ("rate", "masks", "seeds"))
        masks, seeds = parse_indices("masks", config["masks"]), parse_indices("seeds", config["seeds"])
        return cls(Cell.from_config(config), frozenset(itertools.product(masks, seeds)))


def _short(value: Any) -> Any:
    """A group, reduced to its name."""
    return value["name"] if isinstance(value, Mapping) and "name" in value else value


def _need(config: Mapping[str, Any], keys: Iterable[str]) -> None:
    """Refuse a configuration from which a key was deleted (``~rate``)."""
    for key in keys:
        if key not in config:
            raise RequestError(f"{key}: a run needs it; leave out ~{key}.")


def collect_requests(configs: Sequence[Mapping[str, Any]]) -> list[Request]:
    """One request per cell, in order: combinations that differ only in masks or seeds are the same cell."""
    requests: dict[str, Request] = {}
    for request in map(Request.from_config, configs):
        earlier = requests.get(request.cell.hash, request)
        requests[request.cell.hash] = replace(request, trials=request.trials | earlier.trials)
    return list(requests.values())


@dataclass(frozen=True)
class Settings:
    """How to run, as opposed to what: not part of a trial's identity, and changes numbers only by rounding."""

    results_dir: str
    device: str
    threads: int | None
    stack: int
    force: bool
    train_curve: bool
    cache: bool
    dry_run: bool
    n_jobs: int | Literal["auto"]
    backend: dict[str, Any]
    tensorboard: str | None

    @classmethod
    def shared_by(cls, configs: Sequence[Mapping[str, Any]]) -> Settings:
        """The settings of a command, which all its combinations must share."""
        for config in configs:
            _need(config, cls.__dataclass_fields__)
            for key in sorted(config.keys() - cls.__dataclass_fields__.keys() - REQUEST_KEYS):
                raise RequestError(f"{key}={config[key]}: a run has no such key.")
        for key in cls.__dataclass_fields__:
            values = list(dict.fromkeys(str(_short(config[key])) for config in configs))
            if len(values) > 1:
                raise RequestError(f"{key}={','.join(values)}: one value for all combinations of a command.")
        return cls.from_config(configs[0])

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Settings:
        check_values("", config, SETTINGS)
        values = {key: config[key] for key in cls.__dataclass_fields__}
        folder = os.path.expanduser(str(config["results_dir"]))  # str, since a folder may be called 2024
        return cls(**{**values, "results_dir": folder})

    @property
    def cache_dir(self) -> str | None:
        """The folder for learned imputations."""
        return os.path.join(self.results_dir, "imputed") if self.cache else None


@dataclass(frozen=True)
class Batch:
    """Trials of one cell and mask that train as one stack."""

    cell: Cell
    mask: int
    seeds: list[int]
    generation: int

    def seeds_left(self, store: Store) -> list[int]:
        """The seeds that have not been trained in the meantime; all of them in a forced re-run."""
        if self.generation > 0:
            return self.seeds
        return store.missing(self.cell, [self.mask], self.seeds).get(self.mask, [])


Job: TypeAlias = "tuple[Batch, ...]"  # batches on one mask that train as one stack


def make_jobs(plan: Sequence[Batch], size: int, key: Callable[[Cell], str | None]) -> list[Job]:
    """The batches of a plan in stacks of about ``size`` trials, in the order of their first batches.

    Args:
        plan: batches in the order to run them.
        size: a batch joins a stack if that does not make it larger than this.
        key: cells with the same key can share a stack; those with None cannot.
    """
    jobs: list[list[Batch]] = []
    open_jobs: dict[tuple[str, int, int], list[Batch]] = {}
    keys = {batch.cell.hash: key(batch.cell) for batch in plan}
    for batch in plan:
        shared = keys[batch.cell.hash]
        place = (shared or "", batch.mask, batch.generation)
        job = open_jobs.get(place) if shared is not None else None
        if job is None or sum(len(each.seeds) for each in [*job, batch]) > size:
            job = open_jobs[place] = []
            jobs.append(job)
        job.append(batch)
    return [tuple(job) for job in jobs]


def make_plan(requests: Sequence[Request], store: Store, settings: Settings) -> list[Batch]:
    """The batches still to do, breadth first: one mask of every cell before the second mask of any."""
    batches = []
    for request in requests:
        masks, seeds = (sorted(set(axis)) for axis in zip(*request.trials))
        generation = store.next_generation(request.cell) if settings.force else 0
        todo = dict.fromkeys(masks, seeds) if settings.force else store.missing(request.cell, masks, seeds)
        for mask, left in todo.items():
            wanted = [seed for seed in left if (mask, seed) in request.trials]
            for first in range(0, len(wanted), settings.stack):
                chunk = wanted[first : first + settings.stack]
                batches.append(Batch(request.cell, mask, chunk, generation))
    # The sort is stable: within a mask, cells stay in the requested order.
    return sorted(batches, key=lambda batch: batch.mask)
