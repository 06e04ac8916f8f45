"""Checks what sentences written by hand say of the results: :mod:`sentences` has them.

A sentence that more trials have made untrue is then named by ``write_docs.py --check`` instead of standing there.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from measured_parts import DECAY

from pagnn_bench.analysis.tables.results import Result, Results, paired_differences
from pagnn_bench.config.identity import digest
from pagnn_bench.records.store import Trial


class Numbers:
    """The results by missing, data, method, rate and protocol; of experiment=weight_decay by its value instead."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self._found: dict[tuple, Result] = {}
        for result in results.all:
            if result.cell is not None and result.mean is not None:
                key, protocol = result.key, result.cell.protocol
                under = protocol["weight_decay"] if protocol["name"] == DECAY else key.protocol
                self._found[key.missing, key.data, key.method, key.rate, under] = result

    def get(self, missing: str, data: str, method: str, rate: float, under: str | float = "paper") -> Result:
        return self._found[missing, data, method, rate, under]

    def mean(self, *place: Any) -> float:
        """Ours, in percent."""
        mean = self.get(*place).mean
        assert mean is not None  # only those that have one are kept
        return mean

    def off(self, *place: Any) -> float:
        """Ours minus the paper's."""
        difference = self.get(*place).difference
        assert difference is not None, f"the paper has no number for {place}"
        return difference

    def lead(
        self, missing: str, data: str, ours: str, theirs: str, rate: float, under: str | float = "paper"
    ) -> float:
        """How far one method is ahead of another on the masks that both have."""
        first, second = (self.get(missing, data, method, rate, under) for method in (ours, theirs))
        return statistics.fmean(paired_differences(first, second))

    def change(self, missing: str, data: str, method: str, rate: float, under: str) -> float:
        """What another protocol adds to the accuracy under ``paper``, on the masks that both have."""
        first, second = (self.get(missing, data, method, rate, protocol) for protocol in (under, "paper"))
        return statistics.fmean(paired_differences(first, second))

    def twins(self) -> list[tuple[str, list[Trial]]]:
        """(method, records) of every trial that was recorded under several protocols in stacks of several sizes.

        The protocols are those that train alike and differ in name only: the trials had the same random numbers.
        """
        found: dict[str, list[tuple[str, Trial]]] = defaultdict(list)
        for result in self.results.all:
            if result.cell is not None:
                identity = result.cell.identity
                training = {k: v for k, v in identity["protocol"].items() if k not in ("name", "tuning")}
                settings = digest({**identity, "protocol": training}, 12)
                for trial in result.trials:
                    name = f"{settings} {trial.mask} {trial.seed}"
                    found[name].append((result.cell.method["name"], trial))
        return [
            (twins[0][0], [trial for _, trial in twins])
            for twins in found.values()
            if len({trial.batch.facts["stack"] for _, trial in twins}) > 1
        ]


Check: TypeAlias = Callable[[Numbers], bool]


@dataclass(frozen=True)
class Sentence:
    """Words of a page, and whether they are true."""

    page: str
    words: str
    is_true: Check


class Sentences(list[Sentence]):
    """Sentences of pages; :meth:`says` adds one."""

    def says(self, page: str, words: str) -> Callable[[Check], Check]:
        """The decorated function tells whether these words of the page are true."""

        def add(is_true: Check) -> Check:
            self.append(Sentence(page, words, is_true))
            return is_true

        return add


def wrong_sentences(sentences: Sequence[Sentence], results: Results, root: Path) -> list[str]:
    """What pages say that is not so, and what is checked though no page says it any more."""
    numbers = Numbers(results)
    pages = {s.page: " ".join((root / s.page).read_text(encoding="utf-8").split()) for s in sentences}
    absent = [f"{s.page} does not say «{s.words}»" for s in sentences if s.words not in pages[s.page]]
    untrue = [f"{s.page}: «{s.words}» is not so" for s in sentences if not s.is_true(numbers)]
    return absent + untrue


def are(values: Iterable[float], *printed: str) -> bool:
    """Whether values are what is printed, to the digits printed."""
    digits = [len(text.partition(".")[2]) for text in printed]
    return [f"{value:.{d}f}" for value, d in zip(values, digits, strict=True)] == list(printed)


def span(values: Iterable[float], low: str, high: str) -> bool:
    """Whether values go from ``low`` to ``high``, to the digits printed."""
    known = list(values)
    return are((min(known), max(known)), low, high)


def within(values: Iterable[float], bound: float) -> bool:
    """Whether no value is further from zero."""
    return max(map(abs, values)) <= bound
