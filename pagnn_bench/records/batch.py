"""A batch of trials as it is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class StoredBatch:
    """The trials of one file, be it still there or long since collected into a table.

    Attributes:
        path: the file.
        mask: index of the mask that all its trials share.
        generation: 0, or what :meth:`pagnn_bench.records.store.Store.next_generation` gave to a forced re-run.
        facts: whatever was noted about the whole batch: timings, stack size, input statistics.
        provenance: what produced it.
        records: one per trial.
    """

    path: Path
    mask: int
    generation: int
    facts: dict[str, Any]
    provenance: dict[str, Any]
    records: list[dict[str, Any]] = field(repr=False)

    @property
    def name(self) -> str:
        return self.path.name
