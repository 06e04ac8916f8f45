"""The outcome of a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pagnn_bench.engine.plan import Batch
from pagnn_bench.records.provenance import collect_provenance
from pagnn_bench.records.store import Store


class DeviceLost(RuntimeError):
    """The GPU of this process is in an illegal state: all further training would fail."""


class Unfinished(RuntimeError):
    """A training failed; the message is one sentence, and finished trials are kept."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a batch: its records, or the error that ended it. Plain data that can be sent between machines.

    Attributes:
        note: a message for the user, shown once even if several batches have it.
        device_lost: the process that trained it can no longer use its GPU.
        begun: False where the process could not even open its GPU, which is not the batch's fault.
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
        """Stop a process that cannot continue to train, naming the batch that failed."""
        if self.device_lost:
            where = f"{self.batch.cell}, mask {self.batch.mask}"
            raise DeviceLost(f"{where}: {self.error}. The GPU is in an illegal state")

    @classmethod
    def lost(cls, batch: Batch, error: BaseException) -> Outcome:
        """The outcome of a batch that its backend gave up on."""
        first_line = next(iter(str(error).strip().splitlines()), "")
        message = f"{type(error).__name__}: {first_line}"
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
