"""A real Ray cluster on loopback: a head and workers, one of which is killed in the middle."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.backends.common import SWEEP, accuracies, pagnn_bench

ray = pytest.importorskip("ray", reason="Ray is not installed (pip install 'pagnn-bench[ray]')")
pytestmark = pytest.mark.engines
psutil = pytest.importorskip("psutil")

SCRIPT = str(Path(sys.executable).with_name("ray"))


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    """A cluster of this test's own; ports far from the defaults, so that it meets no other."""
    port = "26379"
    options = [
        "--num-cpus=2",
        "--disable-usage-stats",
        "--include-dashboard=false",
        "--object-store-memory=100000000",
    ]
    ports = [f"--port={port}", "--min-worker-port=26400", "--max-worker-port=26500"]
    command = [SCRIPT, "start", "--head", "--node-ip-address=127.0.0.1", *ports, *options]
    # Ray lets all other work go before its own, and the tests beside this one would leave it nothing.
    environment = {**os.environ, "RAY_worker_niceness": "0"}
    started = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    if started.returncode:
        pytest.skip(f"a Ray head cannot be started here: {started.stderr.strip()[-200:]}")
    yield f"127.0.0.1:{port}"
    subprocess.run([SCRIPT, "stop", "--force"], capture_output=True, timeout=60)


def test_the_cluster_equals_one_process(undisturbed, address, tmp_path):
    done = pagnn_bench("run", *SWEEP, "backend=ray", f"backend.address={address}", cwd=tmp_path)
    assert "12 to train" in done.stdout
    assert accuracies(tmp_path / "results") == undisturbed


def test_a_lost_worker_is_made_good(undisturbed, address, tmp_path):
    command = [
        sys.executable,
        "-m",
        "pagnn_bench",
        "run",
        *SWEEP,
        "backend=ray",
        f"backend.address={address}",
    ]
    sweep = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    killed = False
    while sweep.poll() is None:
        for process in psutil.process_iter(["cmdline"]):
            if not killed and process.info["cmdline"] and process.info["cmdline"][0] == "ray::Worker.train":
                process.kill()
                killed = True
        time.sleep(0.1)
    assert killed
    assert sweep.returncode == 0, sweep.stdout.read()
    assert accuracies(tmp_path / "results") == undisturbed


def test_no_cluster_is_one_sentence(tmp_path):
    done = pagnn_bench("run", *SWEEP, "backend=ray", cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert "backend.address" in done.stderr
