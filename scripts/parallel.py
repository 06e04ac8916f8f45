"""What ``n_jobs=auto``, the default, makes of several cores: alone, and beside neighbours that keep every core busy.

    python scripts/parallel.py [--cores K] [KEY=VALUE ...]

Runs one sweep (built-in graph, or the words you give, such as data=cora) three times, into scratch folders:

    one process with one thread        n_jobs=1 threads=1
    the default                        on K cores: at least 0.9 K times the throughput of one process
    the default beside K neighbours    each of which keeps a core busy: at most 2.5 times slower than alone

Start-up counts: it is what a person waits for. Ends with exit code 0 if both targets are met. The first two need a
machine that does nothing else.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pagnn_bench.engine.cores import usable_cores
from pagnn_bench.records.store import Store

SWEEP = [
    "run",
    "-m",
    "method=zero,pagnn_m,pagnn_n,mf",
    "rate=0.3,0.7",
    "masks=2",
    "seeds=20",
    "data=synthetic",
]
SHARE_OF_CORES = 0.9
SLOWDOWN = 2.5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cores", type=int, default=usable_cores(), help="how many to use; all by default")
    parser.add_argument("words", nargs="*", metavar="KEY=VALUE", help="as for pagnn-bench run -m")
    options = parser.parse_args()
    words, cores = [*SWEEP, *options.words], options.cores
    with tempfile.TemporaryDirectory() as scratch:
        one = _seconds(f"{scratch}/one", [*words, "n_jobs=1", "threads=1"], cores)
        _say("one process, one thread", one, scratch + "/one")
        alone = _seconds(f"{scratch}/alone", words, cores)
        _say(f"the default on {cores} cores", alone, scratch + "/alone")
        with _busy_neighbours(cores):
            beside = _seconds(f"{scratch}/beside", words, cores)
        _say(f"the default beside {cores} busy neighbours", beside, scratch + "/beside")
    checks = {
        f"throughput of one process times {one / alone:.2f}; at least {SHARE_OF_CORES * cores:g}": (
            one / alone >= SHARE_OF_CORES * cores
        ),
        f"beside neighbours {beside / alone:.2f} times slower than alone; at most {SLOWDOWN:g}": (
            beside / alone <= SLOWDOWN
        ),
    }
    for text, met in checks.items():
        print(f"{text}: {'met' if met else 'missed'}")
    return 0 if all(checks.values()) else 1


def _seconds(folder: str, words: list[str], cores: int) -> float:
    environment = {**os.environ, "OMP_NUM_THREADS": str(cores)}
    start = time.perf_counter()
    command = [sys.executable, "-m", "pagnn_bench", *words, f"results_dir={folder}"]
    subprocess.run(command, check=True, env=environment, capture_output=True)
    return time.perf_counter() - start


def _say(what: str, seconds: float, folder: str) -> None:
    store = Store(folder)
    trials = sum(len(store.load(cell)) for cell in store.cells())
    print(f"{what:<40}{seconds:8.1f} s{60 * trials / seconds:8.1f} trials per minute", flush=True)


@contextmanager
def _busy_neighbours(number: int) -> Iterator[None]:
    """As many processes as cores, of our own priority, that do nothing but count."""
    command = [sys.executable, "-c", "while True: pass"]
    neighbours = [subprocess.Popen(command) for _ in range(number)]
    try:
        yield
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()


if __name__ == "__main__":
    sys.exit(main())
