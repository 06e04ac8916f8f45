"""Train a random handful of the committed trials again, from scratch, and set the accuracies side by side.

    PAGNN_DATA=... python scripts/recompute.py [--cells 5] [--trials 2] [--pick 0] [WORD ...]

WORDs restrict the choice to cells whose names contain all of them, such as ``cora`` or ``pagnn_n``. On a machine like
the one the results were made on, trials come out the same; elsewhere sums are rounded in another order, single trials
may stop at other epochs, and only means should agree. Exit code 1 if the mean of all trials is off by over a point.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import random
import sys
from pathlib import Path
from statistics import fmean

from pagnn_bench.execute import Executor, pick_device
from pagnn_bench.store import Store

RESULTS = Path(__file__).resolve().parent.parent / "results"
TOLERANCE = 1.0  # points of the mean


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--cells", type=int, default=5)
    parser.add_argument("--trials", type=int, default=2, help="of each cell, all on one mask")
    parser.add_argument("--pick", type=int, default=0, help="another number picks other cells")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    store = Store(RESULTS)
    cells = [cell for cell in store.cells() if cell.protocol["name"] == "paper"]
    cells = [cell for cell in cells if all(word in cell.id for word in options.words)]
    chosen = random.Random(options.pick).sample(cells, min(options.cells, len(cells)))
    if not chosen:
        print(
            f"no committed cell has all these words in its name: {' '.join(options.words)}", file=sys.stderr
        )
        return 2
    executor, old, new = Executor(pick_device(options.device)), [], []
    for cell in chosen:
        trials = [trial for trial in store.load(cell).values() if trial.ok]
        trials = [trial for trial in trials if trial.mask == trials[0].mask][: options.trials]
        here = dataclasses.replace(cell, data={**cell.data, "root": os.environ.get("PAGNN_DATA")})
        again = executor.run(here, trials[0].mask, [trial.seed for trial in trials]).records
        print(f"{cell}, mask {trials[0].mask}")
        for trial, record in zip(trials, again):
            before, after = 100 * trial.record["test_acc"], 100 * record["test_acc"]
            epochs = f"{trial.record['epochs']} and {record['epochs']} epochs"
            print(f"  seed {trial.seed}: committed {before:.2f}, now {after:.2f} ({epochs})", flush=True)
            old.append(before)
            new.append(after)
    same = sum(a == b for a, b in zip(old, new))
    shift = fmean(new) - fmean(old)
    print(f"{same} of {len(old)} trials the same to the last digit; means differ by {shift:+.2f} points")
    return int(abs(shift) > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
