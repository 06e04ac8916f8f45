"""Trials per minute of one sweep with one process, two processes and a local Ray cluster of two workers.

    python scripts/throughput.py [KEY=VALUE ...]

Runs the same sweep (built-in graph, or the words you give, such as data=cora) on each in turn, into scratch
folders, and checks that all three recorded the same accuracies. Start-up counts: it is what a person waits for.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pagnn_bench.records.store import Store

SWEEP = [
    "run",
    "-m",
    "method=zero,pagnn_m,pagnn_n,mf",
    "rate=0.3,0.7",
    "masks=1",
    "seeds=20",
    "data=synthetic",
]
PORT = 26479
RAY = [str(Path(sys.executable).with_name("ray"))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="KEY=VALUE", help="as for pagnn-bench run -m")
    words = [*SWEEP, *parser.parse_args().words]
    head = [
        "--head",
        "--node-ip-address=127.0.0.1",
        f"--port={PORT}",
        "--num-cpus=2",
        "--disable-usage-stats",
    ]
    ways = {
        "one process": ["n_jobs=1"],
        "n_jobs=2": ["n_jobs=2"],
        "Ray, 2 workers": ["backend=ray", f"backend.address=127.0.0.1:{PORT}"],
    }
    subprocess.run([*RAY, "start", *head, "--include-dashboard=false"], check=True, capture_output=True)
    outcomes = []
    try:
        with tempfile.TemporaryDirectory() as scratch:
            for way, extra in ways.items():
                folder = f"{scratch}/{len(outcomes)}"
                start = time.perf_counter()
                command = [sys.executable, "-m", "pagnn_bench", *words, *extra, f"results_dir={folder}"]
                subprocess.run(command, check=True, capture_output=True)
                minutes = (time.perf_counter() - start) / 60
                outcomes.append(_accuracies(folder))
                print(f"{way:<16}{len(outcomes[-1]) / minutes:8.1f} trials per minute", flush=True)
    finally:
        subprocess.run([*RAY, "stop", "--force"], capture_output=True)
    if any(outcome.keys() != outcomes[0].keys() for outcome in outcomes):
        print("the ways did not train the same trials")
        return 1
    differences = [abs(outcome[key] - outcomes[0][key]) for outcome in outcomes for key in outcome]
    print(f"largest difference in the test accuracy of a trial: {100 * max(differences):.2f} points")
    return 0


def _accuracies(folder: str) -> dict[tuple[str, int, int], float]:
    store = Store(folder)
    return {
        (cell.id, *key): trial.record["test_acc"]
        for cell in store.cells()
        for key, trial in store.load(cell).items()
    }


if __name__ == "__main__":
    sys.exit(main())
