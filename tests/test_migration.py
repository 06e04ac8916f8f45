"""Results from before every method had settings of its own: same trials, present names, none lost."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections import Counter
from pathlib import Path

from pagnn_bench.config.identity import Cell
from pagnn_bench.config.sweep import compose_combinations
from pagnn_bench.records.store import Store

ROOT = Path(__file__).parent.parent
TRIAL = {
    "status": "ok",
    "test_acc": 0.8125,
    "val_acc": 0.75,
    "val_loss": 0.123456789012345,
    "best_epoch": 2,
    "epochs": 9,
}


def cell_of(*words: str) -> Cell:
    [config] = compose_combinations(list(words))
    return Cell.from_config(config)


def former(method: str, protocol: str = "paper") -> Cell:
    """A cell as it was called when one setting was for all methods."""
    cell = cell_of(f"method={method}", "protocol=shared")
    return Cell(**{**vars(cell), "protocol": {**cell.protocol, "name": protocol}})


def migrate(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "scripts/migrate_protocols.py", folder]
    return subprocess.run(command, capture_output=True, text=True)


def test_trials_keep_their_digits_under_their_present_names(tmp_path):
    store = Store(tmp_path)
    for number, cell in enumerate((former("pagnn_n"), former("mf"), former("mf", "literal"))):
        records = [{"seed": seed, **TRIAL, "epochs": 9 + number} for seed in range(3)]
        store.save(cell, 0, records, {"train_seconds": 1.5}, {"threads": 1})
    store.collect()
    for path in (tmp_path / "cells").glob("*/*"):
        path.unlink()
    done = migrate(tmp_path)
    assert (done.returncode, done.stdout) == (0, "6 trials have a new name.\n")
    after = Store(tmp_path)
    for words, epochs in {
        ("method=pagnn_n", "protocol=paper"): 9,  # trained alike under both
        ("method=pagnn_n", "protocol=shared"): 9,
        ("method=mf", "protocol=shared"): 10,
    }.items():
        trials = after.load(cell_of(*words))
        assert [trial.record for trial in trials.values()] == [
            {"seed": seed, **TRIAL, "epochs": epochs} for seed in range(3)
        ]
        assert {trial.batch.provenance["threads"] for trial in trials.values()} == {1}
    assert not after.load(cell_of("method=mf", "protocol=paper"))
    assert len(after.load(former("mf", "literal"))) == 3
    # Once is enough.
    again = migrate(tmp_path)
    assert again.returncode == 1
    assert "already" in again.stderr


def test_every_committed_trial_of_the_shared_setting_is_there():
    """As many as the former ``protocol=paper`` had in the last results before the change, and PaGNN's under both."""
    counts: Counter[str] = Counter()
    own: Counter[str] = Counter()
    for path in (ROOT / "results/collected").glob("*.csv"):
        for row in csv.DictReader(path.open(encoding="utf-8")):
            *_, method, protocol, _ = row["cell"].rsplit("-", 5)
            counts[protocol] += 1
            if method.startswith("pagnn"):
                own[protocol] += 1
    assert counts["shared"] >= 24338
    assert own["paper"] >= own["shared"] > 4000
