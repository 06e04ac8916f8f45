"""Kill a whole sweep with SIGKILL at random moments, again and again; the results must equal those without kills.

    python scripts/kill_drill.py            # 20 kills on the built-in graph, in a temporary folder
    python scripts/kill_drill.py --kills 5 --together

With ``--together`` two sweeps work on the folder at once, and both are killed. The exit code is 0 if no trial was lost,
duplicated or changed.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pagnn_bench.records.store import Store

SWEEP = (
    *("run", "-m", "method=zero,pagnn_m,pagnn_n", "rate=0.3,0.9"),
    *("masks=3", "seeds=4", "stack=2", "threads=1"),
    *("data=synthetic", "data.num_nodes=400", "data.num_val=60", "data.num_test=100"),
    *("protocol=quick", "protocol.max_epochs=60"),
)


def start(folder: Path) -> subprocess.Popen[bytes]:
    """A sweep in its own process group, so that no part of it survives a kill."""
    command = [sys.executable, "-m", "pagnn_bench", *SWEEP]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, cwd=folder, start_new_session=True, **quiet)


def trials(folder: Path) -> dict[tuple[str, int, int], tuple[float, int]]:
    """Every finished trial: accuracy and number of epochs."""
    store = Store(folder / "results")
    finished = {
        (cell.id, *key): (trial.record["test_acc"], trial.record["epochs"])
        for cell in store.cells()
        for key, trial in store.load(cell).items()
        if trial.ok
    }
    if store.damaged:
        raise SystemExit(f"Damaged files after the kills: {store.damaged}")
    return finished


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--together", action="store_true", help="two sweeps at a time on one folder")
    parser.add_argument("--seed", type=int, default=0, help="of the random moments")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as calm, tempfile.TemporaryDirectory() as stormy:
        began = time.monotonic()
        if start(Path(calm)).wait():
            raise SystemExit("The undisturbed sweep failed.")
        length = time.monotonic() - began
        expected = trials(Path(calm))
        kills = 0
        while kills < options.kills:
            sweeps = [start(Path(stormy)) for _ in range(2 if options.together else 1)]
            time.sleep(rng.uniform(0.3, 1.0) * length)
            running = [sweep for sweep in sweeps if sweep.poll() is None]
            for sweep in running:
                os.killpg(sweep.pid, signal.SIGKILL)
            for sweep in sweeps:
                sweep.wait()
            done = trials(Path(stormy))
            wrong = {key for key, value in done.items() if expected.get(key) != value}
            if wrong:
                raise SystemExit(f"After {kills} kills {len(wrong)} trials differ: {sorted(wrong)[:3]}")
            kills += 1
            print(f"kill {kills}: {len(done)} of {len(expected)} trials are there", flush=True)
            if len(done) == len(expected):  # nothing left to disturb: start over on an empty folder
                for path in sorted(Path(stormy).rglob("*"), reverse=True):
                    path.rmdir() if path.is_dir() else path.unlink()
        if start(Path(stormy)).wait():
            raise SystemExit("The sweep did not finish after the kills.")
        if trials(Path(stormy)) != expected:
            raise SystemExit("The final results differ from the undisturbed ones.")
    print(f"{len(expected)} trials, identical to the undisturbed sweep.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
