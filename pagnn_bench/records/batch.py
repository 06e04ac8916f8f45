"""A batch of trials as it is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class StoredBatch:
    """The trials of one file, which may since have been collected into a table.

    Attributes:
        path: the file.
        mask: index of the mask that all its trials share.
        generation: 0, or for a forced re-run what :meth:`pagnn_bench.records.store.Store.next_generation` returned.
        facts: about the whole batch: timings, stack size, input statistics.
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
