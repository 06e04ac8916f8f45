"""What became of a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pagnn_bench.engine.plan import Batch
from pagnn_bench.records.provenance import collect_provenance
from pagnn_bench.records.store import Store


class DeviceLost(RuntimeError):
    """The GPU of this process is in an illegal state: whatever it would train next could only fail."""


class Unfinished(RuntimeError):
    """Something broke off, told in one sentence; what was finished before is kept."""


@dataclass(frozen=True)
class Outcome:
    """What became of a batch: records, or the error that broke it off. Plain data, fit to be sent between machines.

    Attributes:
        note: what to tell the user, once however many batches say it.
        device_lost: the process that trained it cannot use its GPU any more.
        begun: False where the process could not even open its GPU, which is no fault of the batch.
    """

    batch: Batch
    provenance: dict[str, Any]
    records: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    traceback: str = ""
    note: str = ""
    device_lost: bool = False
    begun: bool = True

    @property
    def failed(self) -> bool:
        """Whether any trial of the batch failed."""
        return self.error is not None or any(record["status"] == "failed" for record in self.records)

    def raise_if_device_lost(self) -> None:
        """End a process that must not train on, with the batch that it broke at."""
        if self.device_lost:
            where = f"{self.batch.cell}, mask {self.batch.mask}"
            raise DeviceLost(f"{where}: {self.error}. The GPU is in an illegal state")

    @classmethod
    def lost(cls, batch: Batch, error: BaseException) -> Outcome:
        """A batch of which the engine that ran it gave up."""
        message = (
            f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
        )
        return cls(batch, collect_provenance(), error=message, traceback=str(error))

    def save(self, store: Store) -> None:
        """Record the trials, or the failure."""
        batch = self.batch
        if self.error is None:
            store.save(batch.cell, batch.mask, self.records, self.facts, self.provenance, batch.generation)
        else:
            store.save_failure(
                batch.cell, batch.mask, batch.seeds, self.error, self.traceback, self.provenance
            )
