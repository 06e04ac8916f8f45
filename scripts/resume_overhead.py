"""How long a sweep takes to find that everything is done: fabricated results, the real command.

    python scripts/resume_overhead.py [--rates 20] [--seeds 20]

Writes the records of five methods x RATES rates x 5 masks x SEEDS seeds (10,000 trials by default) into a temporary
folder, as batch files and as collected tables, and times ``pagnn-bench run`` on each.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pagnn_bench.config.identity import Cell
from pagnn_bench.config.sweep import compose_combinations
from pagnn_bench.records.store import Store


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", type=int, default=20, help="missing rates")
    parser.add_argument("--seeds", type=int, default=20, help="seeds per mask")
    options = parser.parse_args()
    rates = ",".join(f"{(k + 1) / (options.rates + 1):.3f}" for k in range(options.rates))
    words = ["method=pagnn_m,pagnn_n,zero,mf,fp", f"rate={rates}", f"seeds={options.seeds}", "masks=5"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "files"
        configs = compose_combinations(words, multirun=True)
        trials = _fabricate(Store(folder), configs, options.seeds)
        command = [sys.executable, "-m", "pagnn_bench", "run", "-m", *words]
        print(f"{trials} finished trials in {len(configs)} cells")
        print(f"  batch files:      {_seconds([*command, f'results_dir={folder}']):.1f} s")
        Store(folder).collect()
        shutil.rmtree(folder / "cells")
        print(f"  collected tables: {_seconds([*command, f'results_dir={folder}']):.1f} s")
    return 0


def _fabricate(store: Store, configs: list[dict], seeds: int) -> int:
    record = {
        "status": "ok",
        "test_acc": 0.8,
        "val_acc": 0.8,
        "val_loss": 0.7,
        "best_epoch": 200,
        "epochs": 300,
    }
    facts = {
        "stack": seeds,
        "train_seconds": 9.0,
        "eval_seconds": 3.0,
        "total_seconds": 13.0,
        "seed_epochs": 6000,
    }
    for config in configs:
        cell = Cell.from_config(config)
        for mask in range(5):
            records = [{"seed": seed, **record} for seed in range(seeds)]
            store.save(cell, mask, records, facts, {"version": "0", "time": "2020-01-01T00:00:00+00:00"})
    return len(configs) * 5 * seeds


def _seconds(command: list[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    if "all done already" not in done.stdout:
        raise SystemExit(f"the command did not find its trials:\n{done.stdout}")
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
