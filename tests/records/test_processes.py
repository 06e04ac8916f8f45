"""Processes that die in the middle of a write, or compete for the same batch."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pagnn_bench
from pagnn_bench.records.store import Store
from tests.records.common import CELL, CONFIG, leftovers

WRITER = f"""
import os, signal, sys
from pagnn_bench.config.identity import Cell
from pagnn_bench.records.store import Store
cell = Cell(**{CONFIG!r})
store = Store(sys.argv[1])
def record(seed, accuracy):
    return {{"seed": seed, "status": "ok", "test_acc": accuracy, "curve": [accuracy] * 2000}}
"""


def start(results: Path, code: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(pagnn_bench.__file__).resolve().parent.parent)}
    command = [sys.executable, "-u", "-c", WRITER + code, str(results)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_a_killed_writer_leaves_whole_files_only(tmp_path):
    code = """
for seed in range(100_000):
    store.save(cell, 0, [record(seed, 0.5), record(seed + 1, 0.25)], {}, {})
    print(seed)
"""
    moments = random.Random(0)
    for repetition in range(10):
        store = Store(tmp_path / str(repetition))
        process = start(tmp_path / str(repetition), code)
        reported = [process.stdout.readline()]
        time.sleep(moments.uniform(0, 0.05))
        process.kill()
        reported += process.stdout.readlines()
        process.wait()
        process.stdout.close()
        trials = store.load(CELL)
        whole = [int(line) for line in reported if line.endswith("\n")]
        assert whole
        assert all((0, seed) in trials and (0, seed + 1) in trials for seed in whole)
        assert len(trials) - 1 - len(whole) in (0, 1), "at most the file whose report was cut off"
        assert not store.damaged
        others = [name for name in os.listdir(store.folder(CELL)) if not name.endswith(".json")]
        assert others == leftovers(store)
        assert len(others) <= 1


@pytest.mark.parametrize(("patched", "counted"), [("replace", 0), ("fsync", 0), ("after", 1)])
def test_a_writer_that_dies_between_writing_and_renaming(store, patched, counted):
    code = """
store.save(cell, 1, [record(0, 0.5)], {}, {})
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if PATCHED == "after":
    replace = os.replace
    os.replace = lambda *names: (replace(*names), die())
else:
    setattr(os, PATCHED, die)
store.save(cell, 0, [record(0, 0.5)], {}, {})
"""
    process = start(store.cells_dir.parent, f"PATCHED = {patched!r}\n{code}")
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    trials = store.load(CELL)
    assert (1, 0) in trials
    assert len(trials) == 1 + counted
    assert len(leftovers(store)) == 1 - counted, "otherwise the writer did not die where it should"
    assert store.missing(CELL, [0], [0]) == ({} if counted else {0: [0]})
    assert not store.damaged


def test_a_write_that_breaks_off_halfway_leaves_nothing(store):
    """A limit on the size of files stands in for a disk that fills up in the middle of a file."""
    code = """
import resource
from pagnn_bench.records.sealed import StoreError
store.save(cell, 1, [record(0, 0.5)], {}, {})
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    store.save(cell, 0, [record(0, 0.5)], {}, {})
except StoreError as error:
    print(error)
"""
    sentence, _ = start(store.cells_dir.parent, code).communicate()
    assert "could not be saved: File too large." in sentence
    assert list(store.load(CELL)) == [(1, 0)]
    assert not leftovers(store)
    assert not store.damaged


def test_competing_writers_do_no_harm(store):
    """Two write the same batch, two overlapping ones, over and over, while we read."""
    code = "for _ in range(40): store.save(cell, 0, [record(s, 0.5) for s in {seeds}], {{}}, {{}})"
    ranges = [range(0, 4), range(0, 4), range(2, 6), range(3, 8)]
    writers = [start(store.cells_dir.parent, code.format(seeds=seeds)) for seeds in ranges]
    while any(writer.poll() is None for writer in writers):
        assert set(store.load(CELL)) <= {(0, seed) for seed in range(8)}
        time.sleep(0.01)
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    assert list(store.load(CELL)) == [(0, seed) for seed in range(8)]
    assert [cell.id for cell in store.cells()] == [CELL.id]
    assert len(list(store.folder(CELL).iterdir())) == 4, "three batches and the description"
    assert not store.damaged
