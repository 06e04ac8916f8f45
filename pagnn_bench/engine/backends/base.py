"""The interface of backends: they take the jobs of a plan and return their outcomes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

from pagnn_bench.engine.outcome import Outcome
from pagnn_bench.engine.plan import Job
from pagnn_bench.engine.progress import Progress


class Backend(ABC):
    """Trains the jobs of a plan, in any order.

    Attributes:
        waits: True if the outcomes come back to this command. False if the jobs may start after it has returned, and
            save their outcomes themselves.
        submitted: identifiers of the submitted jobs, if the backend does not wait.
    """

    waits: ClassVar[bool] = True
    submitted: Sequence[str] = ()

    def arrange(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs of a plan as this backend will train them; called once, before anything is written."""
        return list(jobs)

    @abstractmethod
    def run(self, jobs: Sequence[Job], progress: Progress) -> Iterator[Outcome]:
        """The outcome of every batch as soon as it is known; none from a backend that does not wait.

        Such a backend submits the jobs in the call itself; the others train as the outcomes are consumed.
        """
