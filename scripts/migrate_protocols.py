"""Bring results that were recorded before every method had settings of its own under their present names.

    python scripts/migrate_protocols.py RESULTS_DIR

What used to be ``protocol=paper``, one setting for all methods, is ``protocol=shared`` now. PaGNN is trained the same
way under both, so its trials stand under both names. The search that used to be ``protocol=tuned`` (12 settings, none
with a weight decay below 0.0005) becomes ``tuned_12``, its tries ``tuning_12``. Trials keep every digit and their
provenance. Results that are still in files of their own are collected first: ``pagnn-bench collect``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pagnn_bench.config.identity import Cell
from pagnn_bench.records.batch import StoredBatch
from pagnn_bench.records.collected import read_collected, write_collected
from pagnn_bench.records.sealed import SealedFiles

OWN_METHODS = ("pagnn_m", "pagnn_n")  # trained by the paper's setting under `paper` and under `shared`
RENAMED = {"tuned": "tuned_12", "tuning": "tuning_12"}


def renamed(cell: Cell, protocol: str) -> Cell:
    """The same cell under another protocol's name."""
    return replace(cell, protocol={**cell.protocol, "name": protocol})


def places(cell: Cell) -> Iterator[Cell]:
    """Where the trials of an older cell belong now."""
    name = cell.protocol["name"]
    if name == "paper":
        if cell.method["name"] in OWN_METHODS:
            yield cell
        yield renamed(cell, "shared")
    elif name in RENAMED and cell.protocol.get("tuning", {}).get("budget", 12) == 12:
        yield renamed(cell, RENAMED[name])
    else:
        yield cell


def migrate(results_dir: Path) -> int:
    """Rewrite the collected tables; the number of trials that stand under another name than before."""
    files = SealedFiles()
    before = read_collected(results_dir, files)
    if files.damaged:
        raise SystemExit(f"nothing is changed: {', '.join(map(str, files.damaged))} could not be read")
    if any(cell.protocol["name"] == "shared" for cell in before.cells.values()):
        raise SystemExit("nothing is changed: these results have protocol=shared already")
    content: dict[str, tuple[Cell, list[StoredBatch]]] = {}
    moved = 0
    for key, cell in before.cells.items():
        for place in places(cell):
            content[place.hash] = (place, before.batches[key])
            moved += place.hash != key and sum(len(batch.records) for batch in before.batches[key])
    write_collected(results_dir, content.values())
    return moved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "results_dir", type=Path, metavar="RESULTS_DIR", help="a folder with collected/ in it"
    )
    print(f"{migrate(parser.parse_args().results_dir)} trials have a new name.")


if __name__ == "__main__":
    main()
