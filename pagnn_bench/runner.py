"""Plan, execute, store: what is asked for, what is already there, and the rest trained batch by batch.

Nothing here imports torch until there is something to train.
"""

from __future__ import annotations

import itertools
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pagnn_bench.cell import Cell, parse_indices
from pagnn_bench.errors import RequestError
from pagnn_bench.progress import Progress
from pagnn_bench.provenance import collect_provenance
from pagnn_bench.store import Store
from pagnn_bench.summary import count, describe


@dataclass(frozen=True)
class Request:
    """One cell and the trials of it that are wanted."""

    cell: Cell
    masks: list[int]
    seeds: list[int]

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Request:
        masks, seeds = parse_indices("masks", config["masks"]), parse_indices("seeds", config["seeds"])
        return cls(Cell.from_config(config), masks, seeds)

    @property
    def size(self) -> int:
        return len(self.masks) * len(self.seeds)


@dataclass(frozen=True)
class Settings:
    """How to run, as opposed to what: none of this changes a number."""

    results_dir: str
    device: str
    threads: int | None
    stack: int
    force: bool
    train_curve: bool
    cache: bool

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Settings:
        settings = cls(**{key: config[key] for key in cls.__dataclass_fields__})
        if type(settings.stack) is not int or settings.stack < 1:
            raise RequestError(f"stack={settings.stack}: give a whole number of at least 1.")
        if settings.threads is not None and (type(settings.threads) is not int or settings.threads < 1):
            raise RequestError(f"threads={settings.threads}: give a whole number of at least 1, or null.")
        for key in ("force", "train_curve", "cache"):
            if not isinstance(getattr(settings, key), bool):
                raise RequestError(f"{key}={getattr(settings, key)}: choose true or false.")
        return settings


@dataclass(frozen=True)
class Batch:
    """Trials of one cell and mask that train as one stack."""

    cell: Cell
    mask: int
    seeds: list[int]
    generation: int


def make_plan(requests: Sequence[Request], store: Store, settings: Settings) -> list[Batch]:
    """The batches still to do, breadth first: one mask of every cell before the second mask of any."""
    batches = []
    for request in requests:
        generation = store.next_generation(request.cell) if settings.force else 0
        todo = (
            dict.fromkeys(request.masks, request.seeds)
            if settings.force
            else store.missing(request.cell, request.masks, request.seeds)
        )
        for mask, seeds in todo.items():
            for first in range(0, len(seeds), settings.stack):
                chunk = seeds[first : first + settings.stack]
                batches.append(Batch(request.cell, mask, chunk, generation))
    return sorted(
        batches, key=lambda batch: batch.mask
    )  # stable: cells stay in the order they were asked for


def run(configs: Sequence[Mapping[str, Any]]) -> int:
    """Run the cells of one command.

    Args:
        configs: resolved configurations, one per cell; duplicates are run once.

    Returns:
        The exit code: 0; 1 if something failed; 130 if it was interrupted. What is finished is kept in any case.
    """
    settings = Settings.from_config(configs[0])
    requests = list({request.cell.hash: request for request in map(Request.from_config, configs)}.values())
    store = Store(settings.results_dir)
    plan = make_plan(requests, store, settings)
    wanted = sum(request.size for request in requests)
    todo = sum(len(batch.seeds) for batch in plan)
    head = f"{count(len(requests), 'cell')}, {count(wanted, 'trial')}:"
    code = 0
    if plan:
        print(f"{head} {wanted - todo} done already, {todo} to train.", flush=True)
        code = _train(plan, store, settings)
    else:
        print(f"{head} all done already, nothing to train (force=true trains again).")
    for request in requests:
        wanted_trials = set(itertools.product(request.masks, request.seeds))
        trials = [trial for key, trial in store.load(request.cell).items() if key in wanted_trials]
        print(*describe(request.cell, trials), *_failures(request, store), sep="\n")
    print(f"Records: {store.folder(requests[0].cell) if len(requests) == 1 else store.cells_dir}")
    return code


def _failures(request: Request, store: Store) -> list[str]:
    """What went wrong in a cell, one line a batch."""
    return [
        f"  failed: mask {failure.mask}, {count(len(failure.seeds), 'seed')}: {failure.error} "
        f"(traceback in {failure.path})"
        for failure in store.failures(request.cell)
    ]


def _train(plan: Sequence[Batch], store: Store, settings: Settings) -> int:
    """Train all batches; the exit code. A batch that breaks off is noted and does not stop the others."""
    from pagnn_bench.execute import Executor, check_cell, pick_device

    device = pick_device(settings.device)
    for cell in {batch.cell.hash: batch.cell for batch in plan}.values():
        check_cell(cell)
    store.prepare()
    cache = store.cells_dir.parent / "imputed" if settings.cache else None
    executor = Executor(device, settings.threads, settings.train_curve, cache)
    facts = {"device": str(device), "threads": executor.threads}
    progress = Progress(sum(len(batch.seeds) for batch in plan))
    failed = False
    try:
        with progress, _terminable():
            for batch in plan:
                progress.start(batch.cell, batch.mask, len(batch.seeds))
                try:
                    result = executor.run(batch.cell, batch.mask, batch.seeds, progress)
                except Exception as error:
                    failed = True
                    message = f"{type(error).__name__}: {error}"
                    trace, provenance = traceback.format_exc(), collect_provenance(**facts)
                    store.save_failure(batch.cell, batch.mask, batch.seeds, message, trace, provenance)
                else:
                    failed |= any(record["status"] == "failed" for record in result.records)
                    provenance = collect_provenance(**facts, data_checksum=result.data_checksum)
                    done = (result.records, result.facts, provenance, batch.generation)
                    store.save(batch.cell, batch.mask, *done)
    except KeyboardInterrupt:
        print("Stopped. Every finished batch is kept; the same command goes on from here.", file=sys.stderr)
        return 130
    return int(failed)


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end a sweep as Ctrl-C does, so that a batch system's time limit leaves clean results."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
