"""Train a few random committed batches again, from scratch, and compare the accuracies.

    PAGNN_DATA=... python scripts/recompute.py [--cells 5] [--stack 5] [--pick 0] [WORD ...]

WORDs restrict the choice to cells whose names contain all of them, such as ``cora`` or ``pagnn_n``. One batch of every
cell is trained as before: the same seeds in one stack, on as many threads. On a machine like the one the results were
made on, trials are identical; elsewhere sums are rounded in another order, single trials may stop at other epochs, and
only means should agree. The exit code is 1 if the mean of all trials differs by more than a point.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from statistics import fmean

from pagnn_bench.check.trials import known_batch, whole_batches
from pagnn_bench.config.errors import RequestError
from pagnn_bench.engine.device import pick_device
from pagnn_bench.engine.execute import Executor
from pagnn_bench.records.store import Store

RESULTS = Path(__file__).resolve().parent.parent / "results"
TOLERANCE = 1.0  # points of the mean
PROTOCOLS = ("paper", "shared")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--cells", type=int, default=5)
    parser.add_argument("--stack", type=int, default=5, help="only batches of at most this many seeds")
    parser.add_argument("--pick", type=int, default=0, help="seed of the choice of cells")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    try:
        device = pick_device(options.device)
    except RequestError as error:
        print(error, file=sys.stderr)
        return 2
    store, rng = Store(RESULTS), random.Random(options.pick)
    cells = [cell for cell in store.cells() if cell.protocol["name"] in PROTOCOLS]
    cells = [cell for cell in cells if all(word in cell.id for word in options.words)]
    chosen = []
    for cell in rng.sample(cells, len(cells)):
        batches = whole_batches(store.load(cell).values(), options.stack)
        if batches and len(chosen) < options.cells:
            chosen.append((cell, rng.choice(batches)))
    if not chosen:
        words = " ".join(options.words)
        print(f"no committed cell has a batch of that size and all these words: {words}", file=sys.stderr)
        return 2
    old, new = [], []
    for cell, trials in chosen:
        known = known_batch(cell, trials)
        executor = Executor(device, known.threads)
        again = executor.run(known.cell, known.mask, known.seeds).records
        print(f"{cell}, mask {known.mask}")
        for trial, record in zip(trials, again):
            before, after = 100 * trial.record["test_acc"], 100 * record["test_acc"]
            epochs = f"{trial.record['epochs']} and {record['epochs']} epochs"
            print(f"  seed {trial.seed}: committed {before:.2f}, now {after:.2f} ({epochs})", flush=True)
            old.append(before)
            new.append(after)
    same = sum(a == b for a, b in zip(old, new))
    shift = fmean(new) - fmean(old)
    print(f"{same} of {len(old)} trials identical to the last digit; means differ by {shift:+.2f} points")
    return int(abs(shift) > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
