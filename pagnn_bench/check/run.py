"""The whole check of a device, step by step, collected in one document."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from pagnn_bench.bench.contenders import our_contender
from pagnn_bench.bench.machine import machine_facts
from pagnn_bench.check.cases import Case, every_method
from pagnn_bench.check.compare import differences, excesses, repeat_excesses
from pagnn_bench.check.cost import LARGE_METHODS, epoch_ms, on_large_graph, waits_per_epoch
from pagnn_bench.check.observe import EPOCHS, SEEDS, observe, set_up
from pagnn_bench.check.trials import CHOSEN, Known, again, committed, comparison, made_here
from pagnn_bench.config.text import one_line
from pagnn_bench.engine.faults import is_device_lost
from pagnn_bench.methods.imputation import LearnedImputation

SCHEMA = 1
CPU = torch.device("cpu")
TIMED_SEEDS = 20
PARTS = ("methods", "trials", "large")

# A line of a table; its key ``faults`` lists in words what is wrong.
Row = dict[str, Any]
Document = dict[str, Any]


class DeviceLost(RuntimeError):
    """The process can no longer use its GPU, so nothing else can be checked."""


@dataclass(frozen=True)
class Check:
    """What is checked.

    Attributes:
        device: compared with the CPU.
        results: folder of the committed trials.
        quick: leave out the second missing type, all whole trials but one, and the large graph.
        threads: CPU threads.
        say: prints the progress.
    """

    device: torch.device
    results: Path
    quick: bool
    threads: int
    say: Callable[[str], None]

    def run(self) -> Iterator[Document]:
        """The document after every step; ``faults`` is added at the end."""
        document: Document = {
            "schema": SCHEMA,
            "kind": "check-device",
            "settings": {"device": str(self.device), "quick": self.quick, "seeds": SEEDS, "epochs": EPOCHS},
            "machine": machine_facts(self.threads, self.device),
            **{part: [] for part in PARTS},
        }
        lost = []
        try:
            for part, steps in (
                ("methods", self._methods()),
                ("trials", self._trials()),
                ("large", self._large()),
            ):
                for row in steps:
                    document[part].append(row)
                    yield document
        except DeviceLost as error:
            lost.append(f"the device was lost, so the check stopped: {error}")
        rows = [row for part in PARTS for row in document[part]]
        yield {
            **document,
            "faults": [f"{row['name']}: {fault}" for row in rows for fault in row["faults"]] + lost,
        }

    def _methods(self) -> Iterator[Row]:
        cases = list(every_method(self.quick))
        for number, case in enumerate(cases, start=1):
            self.say(f"method {number} of {len(cases)}: {case.name}, {case.missing}")
            yield self._guarded(f"{case.name}, {case.missing}", partial(self._method, case))

    def _method(self, case: Case) -> Row:
        """Differences from the CPU and from itself, waits and times."""
        expected, found = set_up(case.cell, CPU), set_up(case.cell, self.device)
        learned = isinstance(found[0].method, LearnedImputation)
        reference, seen = observe(*expected), observe(*found)
        apart = differences(reference, seen)
        repeated = differences(seen, observe(*set_up(case.cell, self.device)))
        ours, theirs = (our_contender(m, p.prepared, TIMED_SEEDS) for m, p in (found, expected))
        times = epoch_ms([ours] if self.device.type == "cpu" else [theirs, ours], TIMED_SEEDS)
        faults = excesses(apart, learned)
        faults += [f"trained twice, {text}" for text in repeat_excesses(repeated, self.device, learned)]
        return {
            "learned": learned,
            "differences": apart,
            "repeated": max(repeated.values()),
            "waits": waits_per_epoch(ours, self.device),
            "cpu_ms": times[0],
            "device_ms": times[-1],
            "faults": faults,
        }

    def _trials(self) -> Iterator[Row]:
        places = CHOSEN[:1] if self.quick else CHOSEN
        steps = [partial(self._trial, known, "committed") for known in committed(self.results)[: len(places)]]
        if not steps:
            self.say("Cora or its committed trials were not found: trials of the built-in graph instead")
            steps = [partial(self._trial_of, *place) for place in places]
        for number, step in enumerate(steps, start=1):
            self.say(f"trials {number} of {len(steps)}")
            yield self._guarded(f"trials {number}", step)

    def _trial(self, known: Known, source: str) -> Row:
        row = comparison(known, again(known, self.device))
        name = f"{row['label']} on {row['data']}, {row['missing']}, rate {row['rate']:g}"
        return {**row, "name": name, "source": source}

    def _trial_of(self, method: str, missing: str) -> Row:
        return self._trial(made_here(method, missing, self.threads), "this CPU")

    def _large(self) -> Iterator[Row]:
        for number, method in enumerate(() if self.quick else LARGE_METHODS, start=1):
            self.say(f"large graph, {number} of {len(LARGE_METHODS)}: {method}")
            row = on_large_graph(method, self.device, self.threads)
            yield {"name": method, "faults": [row["error"]] if "error" in row else [], **row}

    def _guarded(self, name: str, step: Callable[[], Row]) -> Row:
        """The row of a step; an error is a fault."""
        try:
            return {"name": name, **step()}
        except Exception as error:
            fault = one_line(f"{type(error).__name__}: {error}")
            if is_device_lost(error, self.device):
                raise DeviceLost(f"{name}: {fault}") from error
            return {"name": name, "faults": [fault]}
