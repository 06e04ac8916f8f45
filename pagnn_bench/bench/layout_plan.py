"""The time of experiments as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pagnn_bench.analysis.tables.layout import Part, Table, Value
from pagnn_bench.bench.document import Document
from pagnn_bench.bench.machine import describe_machine
from pagnn_bench.bench.targets import MET, NOT_MET, PLAN_DATA, PLAN_EXPERIMENTS, PLAN_SECONDS
from pagnn_bench.config.text import count, duration


def plan_table(document: Document) -> Table:
    """Methods x datasets: how long they take in one process."""
    entries = document["entries"]
    data = {entry["data"]: entry["data_label"] for entry in entries}
    parts = []
    for name in dict.fromkeys(entry["experiment"] for entry in entries):
        own = [entry for entry in entries if entry["experiment"] == name]
        body = []
        for method, label in {entry["method"]: entry["label"] for entry in own}.items():
            line = [entry for entry in own if entry["method"] == method]
            body.append([Value(label), *_durations(line, data), _duration(line)])
        body.append([Value("all"), *_durations(own, data), _duration(own)])
        header = [name, *data.values(), "all"]
        parts.append(Part([], header, body, rules=frozenset({len(body) - 1})))
    return Table(
        "plan", "Time of experiments", [*_plan_caption(entries), describe_machine(document["machine"])], parts
    )


def _durations(entries: Sequence[dict[str, Any]], data: Iterable[str]) -> list[Value]:
    return [_duration([entry for entry in entries if entry["data"] == name]) for name in data]


def _duration(entries: Sequence[dict[str, Any]]) -> Value:
    """The sum of what is known, with ~ if any of it is inferred; in small print how many cells are unknown."""
    known = [entry["seconds"] for entry in entries if entry["seconds"] is not None]
    unknown = len(entries) - len(known)
    if not known:
        return Value("?" if unknown else "")
    sure = all(entry["from"] == "measured" for entry in entries)
    return Value(f"{'' if sure else '~'}{duration(sum(known))}", f"+ {unknown} unknown" if unknown else "")


def _plan_caption(entries: Sequence[dict[str, Any]]) -> list[str]:
    sources: dict[str, int] = {}
    for entry in entries:
        sources[entry["from"] or "unknown"] = sources.get(entry["from"] or "unknown", 0) + 1
    known = sum(entry["seconds"] or 0.0 for entry in entries)
    trials = sum(entry["trials"] for entry in entries)
    told = ", ".join(f"{number} {source}" for source, number in sources.items())
    lines = [
        f"{count(len(entries), 'cell')}, {count(trials, 'trial')}: {duration(known)} in one process, as far as known.",
        f"Cells by source: {told}. ~ marks what was inferred from another rate, type or method.",
    ]
    threads = sorted({number for entry in entries for number in entry["threads"]})
    if threads:
        told = " or ".join(count(number, "thread") for number in threads)
        lines.append(f"The measured cells were trained with {told}.")
    return [*lines, *_plan_goal(entries)]


def _plan_goal(entries: Iterable[dict[str, Any]]) -> list[str]:
    """The goal for the Cora block, where both tables were asked for."""
    block = [entry for entry in entries if entry["data"] == PLAN_DATA]
    if not set(PLAN_EXPERIMENTS) <= {entry["experiment"] for entry in block}:
        return []
    block = [entry for entry in block if entry["experiment"] in PLAN_EXPERIMENTS]
    unknown = sum(entry["seconds"] is None for entry in block)
    seconds = sum(entry["seconds"] or 0.0 for entry in block)
    goal = f"{block[0]['data_label']} in {' and '.join(PLAN_EXPERIMENTS)}"
    met = MET if seconds <= PLAN_SECONDS and not unknown else NOT_MET
    if unknown and seconds <= PLAN_SECONDS:
        met = f"open, {count(unknown, 'cell')} unknown"
    return [f"{goal}: {duration(seconds)}; goal at most {duration(PLAN_SECONDS)}: {met}."]
