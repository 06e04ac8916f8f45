"""A check as tables, and its verdict."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from pagnn_bench.analysis.tables.layout import Table, TablePart, Value, signed, three_digits
from pagnn_bench.bench.machine import describe_machine
from pagnn_bench.check.compare import LIMITS
from pagnn_bench.config.text import count

Document = dict[str, Any]
ON_CPU = "The CPU was checked against itself: this shows that the check works, but nothing about a GPU."


def tables(document: Document) -> list[Table]:
    """The tables of compared methods, whole trials and costs, without empty ones."""
    every = [_methods_table(document), _trials_table(document), _large_table(document)]
    return [table for table in every if table.parts[0].rows]


def verdict(document: Document) -> str:
    """The last lines: PASS or FAIL, with the faults."""
    device, faults = document["settings"]["device"], document["faults"]
    steps = sum(len(document[part]) for part in ("methods", "trials", "large"))
    notes = [ON_CPU] if is_cpu(document) else []
    if not faults:
        return "\n".join(
            [*notes, f"PASS: {count(steps, 'check')} of {device}; rounding explains all differences."]
        )
    return "\n".join(
        [*notes, f"FAIL: {count(len(faults), 'fault')} of {device}:", *(f"  {fault}" for fault in faults)]
    )


def is_cpu(document: Document) -> bool:
    """Whether the CPU was checked against itself."""
    return document["settings"]["device"].startswith("cpu")


def _methods_table(document: Document) -> Table:
    settings = document["settings"]
    device = settings["device"]
    header = [f"{device} beside the CPU", *LIMITS, "twice"]
    header += ["ms"] if is_cpu(document) else ["waits", "ms CPU", f"ms {device}"]
    rows = []
    for row in document["methods"]:
        seen = row.get("differences", {})
        values = [Value(_exponent(seen.get(name))) for name in LIMITS] + [
            Value(_exponent(row.get("repeated")))
        ]
        if not is_cpu(document):
            values += [_number(row.get("waits")), _number(row.get("cpu_ms"))]
        rows.append([Value(row["name"]), *values, _number(row.get("device_ms")), _judged(row)])
    caption = [
        f"{settings['seeds']} seeds for {settings['epochs']} epochs on the built-in graph, with random numbers drawn "
        "on the CPU. Largest differences as a share of the largest value: filled-in attributes, logits before "
        "training, gradients of the first step, losses of all epochs, logits after training; twice: between two "
        "trainings on the device.",
        "ms: per epoch and seed, with 20 stacked seeds."
        + ("" if is_cpu(document) else " Waits: how often an epoch makes the host wait for the GPU."),
        describe_machine(document["machine"]),
    ]
    return Table("methods", "Methods", caption, [TablePart([], [*header, ""], rows)])


def _trials_table(document: Document) -> Table:
    rows = []
    for row in document["trials"]:
        if "cpu" not in row:
            rows.append([Value(row["name"]), *[Value()] * 5, _judged(row)])
            continue
        cpu, found = row["cpu"], row["device"]
        same = sum(a == b for a, b in zip(cpu, found)) if len(cpu) == len(found) else 0
        here = (
            [Value(f"{fmean(found):.2f}"), Value(signed(fmean(found) - fmean(cpu)))]
            if found
            else [Value()] * 2
        )
        place = [Value(row["name"]), Value(row["source"]), Value(f"{fmean(cpu):.2f}")]
        rows.append([*place, *here, Value(f"{same} of {row['trials']}"), _judged(row)])
    header = ["Whole trials", "CPU's digits", "CPU %", f"{document['settings']['device']} %", "", "same", ""]
    caption = [
        "Mean test accuracy of the same trials. Rounding may stop a trial at another epoch, which changes its accuracy "
        "like another seed; the limit is four standard errors of that."
    ]
    if any(row.get("source") != "committed" for row in document["trials"]):
        caption.append("Cora (PAGNN_DATA) or its committed trials were not found.")
    return Table("trials", "Trials", caption, [TablePart([], header, rows, stub=2)])


def _large_table(document: Document) -> Table:
    on_gpu = not is_cpu(document)
    header = [
        "13,752 nodes, 246,000 edges",
        "seeds",
        "ms",
        "prepare s",
        "peak MB",
        *(["GPU MB"] if on_gpu else []),
        "",
    ]
    rows = []
    for row in document["large"]:
        ms = row["train_ms"] + row["eval_ms"] if "train_ms" in row else None
        keys = ("prepare_seconds", "peak_mb", *(["device_mb"] if on_gpu else []))
        values = [_number(row.get("seeds")), _number(ms), *(_number(row.get(key)) for key in keys)]
        rows.append([Value(row["name"]), *values, _judged(row)])
    caption = [
        "A synthetic graph of AmaComp's size. ms: per epoch and seed. Peak: memory of a separate process."
    ]
    return Table("large", "A large graph", caption, [TablePart([], header, rows)])


def _judged(row: dict[str, Any]) -> Value:
    return Value("FAIL" if row["faults"] else "ok", bold=bool(row["faults"]))


def _exponent(value: float | None) -> str:
    return "" if value is None else "0" if value == 0 else f"{value:.0e}"


def _number(value: float | None) -> Value:
    return Value() if value is None else Value(three_digits(value))
