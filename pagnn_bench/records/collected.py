"""Results in a form to commit and to analyse: a few sorted tables instead of thousands of small files.

    <results_dir>/collected/<data>-<missing>.csv     one row each time a trial was trained; readable, with small diffs
    <results_dir>/collected/<data>-<missing>.json    what is behind the rows: cells, batches, provenance

Together they hold everything that the batch files hold, and the store reads them the same way. The description has the
checksum of its rows. To change both at once, rows are first written as ``.csv.next``; that file counts as soon as the
description matches it, and is then renamed. So whenever a writer is killed, one complete pair is left.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pagnn_bench.config.identity import Cell, digest
from pagnn_bench.records.batch import StoredBatch
from pagnn_bench.records.sealed import (
    SealedFiles,
    StoreError,
    names_in,
    read_sealed,
    write_bytes,
    write_sealed,
)

COLUMNS = ("mask", "seed", "status", "test_acc", "val_acc", "val_loss", "best_epoch", "epochs")
VARYING = ("time",)  # provenance that differs between batches from the same software on the same machine


@dataclass
class Collected:
    """The contents of the collected tables of a results folder, by the hash of the cell."""

    cells: dict[str, Cell] = field(default_factory=dict)
    batches: dict[str, list[StoredBatch]] = field(default_factory=lambda: defaultdict(list))


def folder_of(results_dir: Path) -> Path:
    """Where the tables are."""
    return results_dir / "collected"


def cells_folder(results_dir: Path) -> Path:
    """Where the batch files are, or were before they were collected."""
    return results_dir / "cells"


def write_collected(results_dir: Path, content: Iterable[tuple[Cell, list[StoredBatch]]]) -> list[Path]:
    """Replace the tables; a table whose content is unchanged keeps every byte.

    What is not in ``content`` is lost, so read the present tables before you call this.

    Args:
        results_dir: the results folder.
        content: every cell with all its batches.

    Returns:
        The tables (CSV files), sorted.
    """
    tables: dict[str, list[tuple[Cell, list[StoredBatch]]]] = defaultdict(list)
    for cell, batches in content:
        tables[f"{cell.data['name']}-{cell.missing['name']}"].append((cell, batches))
    paths = []
    for name, rows in sorted(tables.items()):
        rows.sort(key=lambda item: item[0].id)
        path = folder_of(results_dir) / f"{name}.csv"
        _finish(path)
        text = _table(rows).encode()
        write_bytes(_next(path), text)
        body = {"kind": "collected", "csv_sha256": hashlib.sha256(text).hexdigest(), **_description(rows)}
        write_sealed(path.with_suffix(".json"), body, indent=1)
        _finish(path)
        paths.append(path)
    return paths


def _next(table: Path) -> Path:
    return table.with_suffix(".csv.next")


def _finish(table: Path) -> None:
    """Rename new rows that match their description already, whether ours or those of a writer that was killed."""
    try:
        described = read_sealed(table.with_suffix(".json"), {"kind": "collected"})["csv_sha256"]
        if hashlib.sha256(_next(table).read_bytes()).hexdigest() == described:
            os.replace(_next(table), table)
    except FileNotFoundError:
        return  # no table yet, or nothing left to finish
    except OSError as error:
        raise StoreError(f"{table} could not be replaced: {error.strerror}.") from error


def _table(rows: Iterable[tuple[Cell, list[StoredBatch]]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("cell", *COLUMNS, "batch", "more"))
    for cell, batches in rows:
        lines = []
        for batch in batches:
            for record in batch.records:
                whole = {"mask": batch.mask, **record}
                values = [_text(whole.pop(column, None)) for column in COLUMNS]
                more = json.dumps(whole, sort_keys=True) if whole else ""
                key = (batch.mask, record["seed"], batch.generation, batch.name)
                lines.append((key, (cell.id, *values, batch.name, more)))
        writer.writerows(line for _, line in sorted(lines))
    return out.getvalue()


def _text(value: Any) -> str:
    """A value as text that reads back as the same value; empty for None."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _description(rows: Iterable[tuple[Cell, list[StoredBatch]]]) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    groups: dict[str, Any] = {}  # configurations of methods, datasets, protocols that cells share
    batches: dict[str, Any] = {}
    origins: dict[str, Any] = {}
    for cell, contents in rows:
        shared = {key: value for key, value in cell.description().items() if isinstance(value, dict)}
        groups |= {digest(value, 12): value for value in shared.values()}
        names = {key: digest(value, 12) for key, value in shared.items()}
        cells[cell.id] = {**cell.description(), **names}
        for batch in contents:
            origin = {key: value for key, value in batch.provenance.items() if key not in VARYING}
            origins[digest(origin, 12)] = origin
            batches.setdefault(cell.id, {})[batch.name] = {
                "mask": batch.mask,
                "generation": batch.generation,
                "origin": digest(origin, 12),
                "provenance": {key: value for key, value in batch.provenance.items() if key in VARYING},
                "facts": batch.facts,
            }
    return {"cells": cells, "groups": groups, "batches": batches, "origins": origins}


def read_collected(results_dir: Path, files: SealedFiles) -> Collected:
    """Everything in the tables of a results folder; an incomplete table is reported and not counted."""
    collected, folder = Collected(), folder_of(results_dir)
    names = names_in(folder)
    for stem in sorted({Path(name).stem for name in names if name.endswith((".csv", ".json"))}):
        table, described = folder / f"{stem}.csv", f"{stem}.json" in names
        body = files.read(folder / f"{stem}.json", kind="collected") if described else None
        if body is None:
            if not described:
                files.report(table, f"has no {stem}.json beside it; not counted")
            continue
        text = _rows_of(table, body["csv_sha256"], files)
        if text is not None:
            rows = csv.DictReader(io.StringIO(text.decode(), newline=""))
            _add_table(collected, body, rows, cells_folder(results_dir))
    return collected


def _rows_of(table: Path, sha256: str, files: SealedFiles) -> bytes | None:
    """The rows that match a description; None, and a report, if there are none."""
    reason = f"does not fit {table.stem}.json"
    for path in (table, _next(table)):
        try:
            text = path.read_bytes()
        except OSError as error:
            if path == table:
                reason = f"cannot be read ({error.strerror})"
            continue
        if hashlib.sha256(text).hexdigest() == sha256:
            return text
    files.report(table, f"{reason}; not counted")
    return None


def _add_table(
    collected: Collected, body: Mapping[str, Any], rows: Iterable[dict[str, str]], folder: Path
) -> None:
    """Add the contents of one table and its description."""
    records: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        record = {key: _value(key, row[key]) for key in COLUMNS if key != "mask" and row[key]}
        more = json.loads(row["more"]) if row["more"] else {}
        records[row["cell"], row["batch"]].append({**record, **more})
    for cell_id, config in body["cells"].items():
        cell = Cell(**{key: body["groups"].get(value, value) for key, value in config.items()})
        collected.cells[cell.hash] = cell
        for name, batch in body["batches"].get(cell_id, {}).items():
            provenance = {**body["origins"][batch["origin"]], **batch["provenance"]}
            about = (batch["mask"], batch["generation"], batch["facts"], provenance)
            path = folder / cell.id / name
            collected.batches[cell.hash].append(StoredBatch(path, *about, records[cell_id, name]))


def _value(key: str, text: str) -> Any:
    return text if key == "status" else json.loads(text)
