"""Result files: written completely or not at all, named by content, so that a killed sweep resumes where it was.

    <results_dir>/cells/<cell.id>/cell.json              the resolved configuration of the cell
    <results_dir>/cells/<cell.id>/<batch>.json           the trials of one batch: one mask, several seeds
    <results_dir>/cells/<cell.id>/<batch>.failed.json    a batch that crashed: error and traceback
    <results_dir>/collected/                             the same in a few tables (:mod:`pagnn_bench.records.collected`)

There is no index and no lock: any number of processes may write, and a reader takes the folder as it is.
The files are plain because SQLite's WAL does not work over network file systems and DuckDB allows a single writer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import Cell, digest
from pagnn_bench.records.batch import StoredBatch
from pagnn_bench.records.collected import (
    Collected,
    cells_folder,
    folder_of,
    read_collected,
    write_collected,
)
from pagnn_bench.records.sealed import SCHEMA, SealedFiles, names_in, write_sealed

CELL_FILE = "cell.json"
FAILED_SUFFIX = ".failed.json"
STALE_SECONDS = 3600  # no write takes an hour, so an older temporary file belongs to a process that is gone


@dataclass(frozen=True)
class Trial:
    """One recorded training run; ``record`` holds ``seed``, ``status`` and everything that was measured."""

    record: dict[str, Any]
    batch: StoredBatch

    @property
    def mask(self) -> int:
        return self.batch.mask

    @property
    def seed(self) -> int:
        return self.record["seed"]

    @property
    def ok(self) -> bool:
        """False for a trial that diverged: it is recorded with its reason and tried again by the next run."""
        return self.record["status"] == "ok"

    @property
    def rank(self) -> tuple[bool, int, str]:
        """Of several records of one trial the highest counts. It depends on no clock, so all readers agree.

        Success comes before generation: a forced re-run that diverges never replaces a good result.
        """
        return self.ok, self.batch.generation, self.batch.name


@dataclass(frozen=True)
class Failure:
    """A batch that crashed with an exception; ``seeds`` are those that have not succeeded since."""

    path: Path
    mask: int
    seeds: list[int]
    error: str
    traceback: str
    provenance: dict[str, Any]


class Store:
    """The results of all cells below one folder.

    Args:
        results_dir: the folder; :meth:`prepare` creates it, reading does not need it.
    """

    def __init__(self, results_dir: str | os.PathLike[str]) -> None:
        self.results_dir = Path(results_dir)
        self.cells_dir = cells_folder(self.results_dir)
        self._files = SealedFiles()

    @cached_property
    def _collected(self) -> Collected:
        return read_collected(self.results_dir, self._files)

    def collect(self) -> list[Path]:
        """Write everything recorded here, batch files and earlier tables alike, into the collected tables.

        Raises:
            RequestError: a table could not be read; replacing it would lose the trials that are only there.
            StoreError: a table could not be written.
        """
        content = [(cell, list(self._batches(cell))) for cell in self.cells()]
        unread = [path.name for path in self.damaged if path.parent == folder_of(self.results_dir)]
        if unread:
            raise RequestError(
                f"collect: {', '.join(unread)} could not be read, and trials that are only there would be lost; "
                "bring back the committed files, or move these away."
            )
        return write_collected(self.results_dir, content)

    @property
    def damaged(self) -> dict[Path, str]:
        """The files so far that could not be counted, and why; each is also logged as a warning."""
        return self._files.damaged

    def prepare(self) -> None:
        """Create the folder, check that it can be written to, and delete what killed writers left behind.

        Raises:
            RequestError: nothing can be written there, which is better known before training than after it.
        """
        probe = self.cells_dir / f".probe.{os.urandom(8).hex()}.tmp"
        try:
            self.cells_dir.mkdir(parents=True, exist_ok=True)
            try:
                probe.write_text("This folder can be written to.\n", encoding="utf-8")
                now = probe.stat().st_mtime  # the clock of a file server may differ from ours
            finally:
                probe.unlink(missing_ok=True)
        except OSError as error:
            raise RequestError(
                f"results_dir={self.cells_dir.parent}: cannot be written to ({error.strerror}); "
                "choose a folder that can."
            ) from error
        for temporary in (*self.cells_dir.glob(".*.tmp"), *self.cells_dir.glob("*/.*.tmp")):
            with suppress(OSError):  # another process may be cleaning up as well
                if now - temporary.stat().st_mtime > STALE_SECONDS:
                    temporary.unlink()

    def folder(self, cell: Cell) -> Path:
        """Where the files of a cell are."""
        return self.cells_dir / cell.id

    def save(
        self,
        cell: Cell,
        mask: int,
        records: Sequence[dict[str, Any]],
        batch: dict[str, Any],
        provenance: dict[str, Any],
        generation: int = 0,
    ) -> Path:
        """Write the trials of one batch; once this returns they survive a crash.

        Args:
            cell: the cell they belong to.
            mask: the mask they share.
            records: one per trial, with ``seed`` and ``status`` ("ok" or "failed"); "ok" needs ``test_acc``.
            batch: facts about the batch as a whole.
            provenance: what produced it.
            generation: 0, or for a forced re-run :meth:`next_generation` as it was before its first batch.

        Raises:
            StoreError: the file could not be written.
            ValueError: the records are invalid; NaN and infinity always are.
        """
        _check_records(records)
        outcomes = {record["seed"]: record["status"] for record in records}
        # The outcomes are in the name, so a file can only be replaced by one in which the same trials succeeded.
        path = self._path(cell, mask, outcomes, ".json", generation, sorted(outcomes.items()))
        content = {"generation": generation, "mask": mask, "records": records}
        self._write(path, cell, "trials", {**content, "batch": batch, "provenance": provenance})
        self._resolve_failures(cell, mask, outcomes)
        return path

    def save_failure(
        self,
        cell: Cell,
        mask: int,
        seeds: Sequence[int],
        error: str,
        traceback: str,
        provenance: dict[str, Any],
    ) -> Path:
        """Note that a batch crashed. Its trials stay :meth:`missing`, so the next run tries them again."""
        path = self._path(cell, mask, seeds, FAILED_SUFFIX)
        content = {"mask": mask, "seeds": sorted(seeds), "error": error, "traceback": traceback}
        self._write(path, cell, "failure", {**content, "provenance": provenance})
        return path

    def load(self, cell: Cell) -> dict[tuple[int, int], Trial]:
        """Every recorded trial of a cell once, by (mask, seed), including those whose ``ok`` is False."""
        best: dict[tuple[int, int], Trial] = {}
        for batch in self._batches(cell):
            for record in batch.records:
                trial = Trial(record, batch)
                rival = best.setdefault((trial.mask, trial.seed), trial)
                if trial.rank > rival.rank:
                    best[trial.mask, trial.seed] = trial
        return dict(sorted(best.items()))

    def missing(self, cell: Cell, masks: Sequence[int], seeds: Sequence[int]) -> dict[int, list[int]]:
        """The seeds still to be run, by mask; a mask with nothing left to do does not appear."""
        done = self._succeeded(cell)
        if done and self.folder(cell).is_dir():
            self._describe(cell)  # restores a damaged description even if nothing is left to run
        todo = {mask: [seed for seed in seeds if (mask, seed) not in done] for mask in masks}
        return {mask: left for mask, left in todo.items() if left}

    def failures(self, cell: Cell) -> list[Failure]:
        """The batches that crashed, with the trials that have not succeeded since."""
        noted = self._noted_failures(cell)
        done = self._succeeded(cell) if noted else set()
        left = [[seed for seed in note.seeds if (note.mask, seed) not in done] for note in noted]
        return [replace(note, seeds=seeds) for note, seeds in zip(noted, left) if seeds]

    def next_generation(self, cell: Cell) -> int:
        """The generation of a forced re-run: one above everything recorded so far."""
        return max((batch.generation + 1 for batch in self._batches(cell)), default=0)

    def cells(self) -> Iterator[Cell]:
        """Every cell that has a folder or rows in a collected table, sorted by id."""
        cells = {cell.id: cell for cell in (*self._collected.cells.values(), *self._described())}
        yield from (cells[key] for key in sorted(cells))

    def _described(self) -> Iterator[Cell]:
        """The cells that have a folder, as their ``cell.json`` describes them."""
        for folder in map(self.cells_dir.joinpath, names_in(self.cells_dir)):
            if not folder.is_dir():
                continue
            description = self._files.read(folder / CELL_FILE, kind="cell")
            if description is None:
                if any(_is_result(name) for name in names_in(folder)):
                    self._files.report(folder, f"has no usable {CELL_FILE}; run its cell again to list it")
                continue
            cell = Cell(**description["config"])
            if cell.id == folder.name:
                yield cell
            else:  # the folder was renamed, or comes from a version with another identity of cells
                self._files.report(folder, f"describes another cell, {cell.id}; not counted")

    def _batches(self, cell: Cell) -> Iterator[StoredBatch]:
        """Every batch of a cell once: from its own file, or from a collected table."""
        seen = set()
        for path, content in self._read_all(cell, "trials"):
            seen.add(path.name)
            keys = ("mask", "generation", "batch", "provenance", "records")
            yield StoredBatch(path, *(content[key] for key in keys))
        yield from (batch for batch in self._collected.batches[cell.hash] if batch.name not in seen)

    def _succeeded(self, cell: Cell) -> set[tuple[int, int]]:
        return {key for key, trial in self.load(cell).items() if trial.ok}

    def _noted_failures(self, cell: Cell) -> list[Failure]:
        keys = ("mask", "seeds", "error", "traceback", "provenance")
        return [
            Failure(path, **{key: content[key] for key in keys})
            for path, content in self._read_all(cell, "failure")
        ]

    def _resolve_failures(self, cell: Cell, mask: int, ended: Iterable[int]) -> None:
        """Delete the notes on failed batches whose trials have all succeeded or have just ended."""
        noted = [failure for failure in self._noted_failures(cell) if failure.mask == mask]
        resolved = self._succeeded(cell).union((mask, seed) for seed in ended) if noted else set()
        for failure in noted:
            if resolved.issuperset((mask, seed) for seed in failure.seeds):
                with suppress(
                    OSError
                ):  # a note left behind is harmless: failures() checks what has succeeded
                    failure.path.unlink()

    def _path(self, cell: Cell, mask: int, seeds: Iterable[int], suffix: str, *distinct: Any) -> Path:
        """The file of a batch: mask and span of seeds for people, and a digest that makes the name unique."""
        seeds = sorted(seeds)
        span = f"{seeds[0]}..{seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"
        name = digest([SCHEMA, cell.hash, mask, seeds, *distinct], 8)
        return self.folder(cell) / f"mask{mask}-seeds{span}-{name}{suffix}"

    def _describe(self, cell: Cell) -> None:
        """Write ``cell.json`` if there is none."""
        path = self.folder(cell) / CELL_FILE
        if not path.exists():
            body = {"kind": "cell", "cell": cell.hash, "id": cell.id, "config": cell.description()}
            write_sealed(path, body, indent=2)

    def _write(self, path: Path, cell: Cell, kind: str, content: Mapping[str, Any]) -> None:
        self._describe(cell)  # first, so that no result is ever without it
        write_sealed(path, {"kind": kind, "cell": cell.hash, **content})

    def _read_all(self, cell: Cell, kind: str) -> Iterator[tuple[Path, dict[str, Any]]]:
        folder = self.folder(cell)
        for name in names_in(folder):
            if _is_result(name) and name.endswith(FAILED_SUFFIX) == (kind == "failure"):
                content = self._files.read(folder / name, kind=kind, cell=cell.hash)
                if content is not None:
                    yield folder / name, content


def _check_records(records: Sequence[dict[str, Any]]) -> None:
    """Refuse invalid records. Readers do not check again: the checksum proves that nothing has changed since."""
    for record in records:
        if type(record.get("seed")) is not int or record.get("status") not in ("ok", "failed"):
            raise ValueError(f"a record needs an integer seed and the status ok or failed: {record}")
        accuracy = record.get("test_acc")
        if record["status"] == "ok" and not (isinstance(accuracy, (int, float)) and 0 <= accuracy <= 1):
            raise ValueError(f"a trial that is ok needs a test_acc in [0, 1]: {record}")
    if not records or len({record["seed"] for record in records}) < len(records):
        raise ValueError(f"a batch has at least one trial, and each seed once: {records}")


def _is_result(name: str) -> bool:
    return name.endswith(".json") and name != CELL_FILE
