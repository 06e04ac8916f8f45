"""The GPUs of this machine and their assignment: a worker process keeps one GPU for its life and sees no other."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from multiprocessing.connection import Connection

from pagnn_bench.engine.backends.nursery import start_worker
from pagnn_bench.engine.plan import Settings
from pagnn_bench.engine.processes import worker_threads

PROBE_SECONDS = 120.0  # opening a GPU takes seconds; one that hangs is broken
VISIBLE = "CUDA_VISIBLE_DEVICES"


def devices_here(settings: Settings) -> tuple[str, ...]:
    """The devices on which a command trains on this machine: working GPUs, or the CPU.

    If worker processes will train, workers test the GPUs, since a process that has opened one keeps part of its memory.

    Raises:
        RequestError: the device does not exist or does not work.
    """
    from pagnn_bench.engine.device import candidates, pick_device

    cards = candidates(settings.device)
    workers = len(cards) > 1 if settings.n_jobs == "auto" else settings.n_jobs > 1
    if not cards or not workers:
        return (str(pick_device(settings.device)),)
    return _tried_by_workers(settings.device, tuple(cards), worker_threads(settings))


@cache
def _tried_by_workers(name: str, cards: Sequence[int], threads: int) -> tuple[str, ...]:
    from pagnn_bench.engine.device import settle

    workers = [(card, start_worker(threads)) for card in cards]
    for card, worker in workers:
        worker.send((_try, (card,)))
    faults = {card: _answer(card, worker) for card, worker in workers}
    return tuple(f"cuda:{card}" for card in settle(name, faults)) or ("cpu",)


def _try(card: int, connection: Connection) -> tuple[str | None]:
    """In a worker: why it cannot use a GPU, or None."""
    from pagnn_bench.engine.device import fault

    hold_card(card)
    return (fault(0),)


def _answer(card: int, worker: Connection) -> str | None:
    """Wait for a worker's answer, then release the worker and its GPU."""
    with worker:
        try:
            while worker.poll(PROBE_SECONDS):
                message = worker.recv()
                if isinstance(message, tuple):  # its first message is its process id
                    reason = message[0]
                    return reason and reason.replace("cuda:0", f"cuda:{card}")
        except (EOFError, OSError):
            return f"cuda:{card} cannot be used: a process that tried it died"
    return f"cuda:{card} cannot be used: it did not answer within {PROBE_SECONDS:.0f} s"


@cache
def hold_card(card: int) -> None:
    """Let this process see only one of the visible GPUs, as ``cuda:0``. Call it before opening any GPU."""
    visible = os.environ.get(VISIBLE, "").split(",")
    os.environ[VISIBLE] = visible[card].strip() if visible != [""] else str(card)
