"""Where worker processes come from: one process that imports torch while the parent still plans, then forks on demand.

A fork of a process that has imported everything and run nothing becomes a worker within milliseconds, and all workers
share the memory of the imports. The parent's ``__main__`` is not run again, so users' scripts need no guard. Without
fork (Windows), every worker starts separately and does its own imports.
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

# The imports of a batch; torch.optim imports torch._dynamo at its first step, which takes as long as torch itself.
PRELOADED = ("pagnn_bench.engine.execute", "pagnn_bench.engine.backends.work", "torch._dynamo")
# Libraries read these only once, when they are loaded.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

_nursery: Nursery | None = None


class Nursery:
    """A process that forks workers. Nobody waits for it to be ready: workers requested early start when they can.

    Args:
        threads: for every library that a worker uses.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._control, theirs = socket.socketpair()
        path = [entry or os.getcwd() for entry in sys.path]  # users' classes may be anywhere on it
        program = (
            f"import sys; sys.path[:] = {path!r}\n"
            f"from {__name__} import raise_workers; raise_workers({theirs.fileno()})"
        )
        with theirs, _ignoring_interrupts():
            self._process = subprocess.Popen(
                [sys.executable, "-c", program],
                stdin=subprocess.DEVNULL,
                env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))},
                pass_fds=[theirs.fileno()],
            )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def fork_worker(self, connection: Connection) -> None:
        """Fork a worker that serves this end of a pipe."""
        # If this process was killed, the pipe closes as if the worker had died.
        with suppress(OSError):
            socket.send_fds(self._control, [b"w"], [connection.fileno()])

    def close(self) -> None:
        self._control.close()
        self._process.kill()
        self._process.wait()


def warm_up(threads: int) -> None:
    """Start importing what workers need, unless that has started already."""
    global _nursery
    if not hasattr(os, "fork") or (_nursery and _nursery.alive and _nursery.threads == threads):
        return
    cool_down()
    _nursery = Nursery(threads)
    atexit.register(cool_down)


def cool_down() -> None:
    """End the nursery: workers are not needed after all, or no longer."""
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
            _nursery.fork_worker(theirs)
        else:
            multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True).start()
    return ours


def raise_workers(control: int) -> None:
    """The nursery's work: import, then fork a worker for every pipe that arrives, until the parent is gone."""
    signal.signal(
        signal.SIGCHLD, signal.SIG_IGN
    )  # exit codes do not matter: the pipe shows that a worker ended
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
        os._exit(0)  # a worker must not run the nursery's exit handlers


def _serve(connection: Connection) -> None:
    """Run what arrives through the pipe, until it closes."""
    with suppress(EOFError, OSError):  # the parent is gone
        connection.send(os.getpid())
        while True:
            function, arguments = connection.recv()
            connection.send(function(*arguments, connection))


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Processes started here ignore Ctrl-C, which a terminal sends to all: the parent ends its workers itself."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
