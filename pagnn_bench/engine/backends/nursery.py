"""Where worker processes come from: one process that imports torch while the parent still plans, then forks on demand.

A fork of a process that has imported everything and run nothing is a worker within milliseconds, and the workers share
the memory of what was imported. Nothing of the parent's ``__main__`` is run again, so a script of a user's own needs no
guard. Where there is no fork (Windows), every worker starts by itself and imports for itself.
"""

from __future__ import annotations

import atexit
import importlib
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

# What a batch needs; torch.optim imports torch._dynamo at its first step, which takes as long as torch itself.
PRELOADED = ("pagnn_bench.engine.execute", "pagnn_bench.engine.backends.work", "torch._dynamo")
# Libraries read these once, when they are loaded.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

_nursery: Nursery | None = None


class Nursery:
    """A process that forks workers. It is not waited for: a worker that is asked for early comes when it can.

    Args:
        threads: of every library that a worker uses.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._control, theirs = socket.socketpair()
        path = [entry or os.getcwd() for entry in sys.path]  # a class of the user's own may be anywhere on it
        program = (
            f"import sys; sys.path[:] = {path!r}\n"
            f"from {__name__} import raise_workers; raise_workers({theirs.fileno()})"
        )
        with theirs, _deaf_to_interrupts():
            self._process = subprocess.Popen(
                [sys.executable, "-c", program],
                stdin=subprocess.DEVNULL,
                env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))},
                pass_fds=[theirs.fileno()],
            )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def bear(self, connection: Connection) -> None:
        """Fork a worker at the other end of this one's pipe."""
        with suppress(
            OSError
        ):  # a nursery that was killed bears nobody: the pipe ends, as if the worker had died
            socket.send_fds(self._control, [b"w"], [connection.fileno()])

    def close(self) -> None:
        self._control.close()
        self._process.kill()
        self._process.wait()


def warm_up(threads: int) -> None:
    """Begin to import what workers need; costs nothing where it has begun already."""
    global _nursery
    if not hasattr(os, "fork") or (_nursery and _nursery.alive and _nursery.threads == threads):
        return
    cool_down()
    _nursery = Nursery(threads)
    atexit.register(cool_down)


def cool_down() -> None:
    """Workers are not needed after all, or no longer."""
    global _nursery
    if _nursery is not None:
        _nursery.close()
        _nursery = None


def start_worker(threads: int) -> Connection:
    """A new worker process, seen through its pipe; its first message is its process id."""
    ours, theirs = multiprocessing.Pipe()
    with theirs:
        warm_up(threads)
        if _nursery is not None:
            _nursery.bear(theirs)
        else:
            multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True).start()
    return ours


def raise_workers(control: int) -> None:
    """What the nursery does: import, then fork a worker for every pipe that comes in, until the parent is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a worker ended: its pipe says that it did
    with socket.socket(fileno=control) as parent:
        for name in PRELOADED:
            importlib.import_module(name)
        while True:
            message, descriptors, _, _ = socket.recv_fds(parent, 1, 1)
            if not message:
                return
            if os.fork() == 0:
                break
            os.close(descriptors[0])
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        _serve(Connection(descriptors[0]))
    finally:
        os._exit(0)  # what the nursery would do at its end is not for a worker to do


def _serve(connection: Connection) -> None:
    """Do what comes through the pipe, until it closes."""
    with suppress(EOFError, OSError):  # the parent is gone
        connection.send(os.getpid())
        while True:
            function, arguments = connection.recv()
            connection.send(function(*arguments, connection))


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """What is started here never hears Ctrl-C, which a terminal sends to all: the parent ends its workers itself."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
