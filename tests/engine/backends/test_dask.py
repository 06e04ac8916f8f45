"""A real Dask scheduler with workers on loopback, one of which is killed in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from pagnn_bench.engine.backends import dask
from pagnn_bench.engine.outcome import Outcome
from pagnn_bench.engine.plan import Batch
from tests.engine.backends.common import SWEEP, accuracies, pagnn_bench
from tests.engine.test_plan import SETTINGS
from tests.records.common import CELL

pytest.importorskip("distributed", reason="Dask is not installed (pip install 'pagnn-bench[dask]')")
pytestmark = pytest.mark.engines

ADDRESS = "tcp://127.0.0.1:28786"


@pytest.fixture
def workers(tmp_path) -> Iterator[list[subprocess.Popen[bytes]]]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    options = ["--host", "127.0.0.1", "--no-dashboard"]
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", *options, "--port", "28786"], **quiet
    )
    command = [
        sys.executable,
        "-m",
        "distributed.cli.dask_worker",
        ADDRESS,
        "--nthreads",
        "1",
        *options,
        "--no-nanny",
    ]
    processes = [subprocess.Popen(command, **quiet) for _ in range(2)]
    yield processes
    for process in (*processes, scheduler):
        process.kill()
        process.wait()


def test_the_cluster_equals_one_process_though_a_worker_dies(undisturbed, workers, tmp_path):
    command = [
        sys.executable,
        "-m",
        "pagnn_bench",
        "run",
        *SWEEP,
        "backend=dask",
        f"backend.address={ADDRESS}",
    ]
    sweep = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    while not list(tmp_path.glob("results/cells/*/mask*.json")):
        assert sweep.poll() is None, sweep.stdout.read()
        time.sleep(0.05)
    workers[0].send_signal(signal.SIGKILL)
    assert sweep.wait(timeout=240) == 0, sweep.stdout.read()
    assert accuracies(tmp_path / "results") == undisturbed


def test_no_scheduler_is_one_sentence(tmp_path):
    wrong = ("backend=dask", "backend.address=tcp://127.0.0.1:1", "backend.timeout=1")
    done = pagnn_bench("run", *SWEEP, *wrong, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert "backend.address=tcp://127.0.0.1:1" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_worker_that_has_lost_its_gpu_ends_before_its_next_job(monkeypatch):
    job = (Batch(CELL, 0, [0], 0),)
    ended = []
    monkeypatch.setattr(dask, "_lost", False)
    monkeypatch.setattr(os, "_exit", ended.append)
    for lost in (False, True, False):
        monkeypatch.setattr(
            dask, "perform", lambda job, settings, lost=lost: [Outcome(job[0], {}, device_lost=lost)]
        )
        dask.perform_unless_lost(job, SETTINGS)
    assert ended == [1], "at the third, after the second has lost it"
