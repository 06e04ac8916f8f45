"""Documents as tables, which :mod:`pagnn_bench.analysis.tables.render` writes."""

from __future__ import annotations

from collections.abc import Sequence

from pagnn_bench.analysis.tables.layout import Table, TablePart, Value, three_digits
from pagnn_bench.bench.document import Document
from pagnn_bench.bench.layout_growth import growth_table
from pagnn_bench.bench.layout_parallel import parallel_table
from pagnn_bench.bench.machine import describe_machine
from pagnn_bench.bench.speed import (
    CSR,
    OURS,
    PLAIN,
    Row,
    place_of,
    ratio,
    ratio_range,
    reference_of,
    rows_of,
    verdict,
)
from pagnn_bench.bench.targets import MEMORY_MB, MET, NOT_MET
from pagnn_bench.config.text import count

SIDES = {PLAIN: "plain loop", CSR: "plain loop, CSR"}


def make_table(document: Document) -> Table:
    """The table of any document."""
    kinds = {"speed": speed_table, "growth": growth_table, "parallel": parallel_table}
    return kinds[document["kind"]](document)


def speed_table(document: Document) -> Table:
    """Milliseconds per seed-epoch, ratios to the plain loop, targets and memory; one part per place."""
    rows, labels = rows_of(document), {place["data"]: place["label"] for place in document["places"]}
    places = list(dict.fromkeys(map(place_of, rows)))
    parts = [_speed_part([row for row in rows if place_of(row) == place], labels) for place in places]
    settings = document["settings"]
    caption = [
        "ms: one epoch of one seed, train step and evaluation, median over "
        f"{count(settings['repeats'], 'round')} over all contenders in turn, with quartiles; preparation excluded.",
        "Times plain: seed-epochs per second relative to the plain torch_geometric loop (with the smallest and largest "
        "ratio of a single round); times CSR: to the same loop with a sparse adjacency instead of an edge list.",
        "One process (n_jobs=1) for every contender, with the same number of threads.",
        "Peak: resident memory of a separate process; extra: beyond its imports and data."
        + (" GPU: peak memory of its tensors." if any(row.device_mb for row in rows) else ""),
        *_memory_limits(rows, labels),
        describe_machine(document["machine"]),
    ]
    return Table("speed", "Speed", caption, parts)


def _speed_part(rows: Sequence[Row], labels: dict[str, str]) -> TablePart:
    data, missing, rate = place_of(rows[0])
    title = f"{labels.get(data, data)}, {missing}, rate {rate:g}"
    header = [title, "", "precision", "ms", "times plain", "times CSR", "target", ""]
    header += ["prepare s", "peak MB", "extra MB"]
    on_gpu = any(row.device_mb is not None for row in rows)
    header += ["GPU MB"] if on_gpu else []
    body: list[list[Value]] = []
    rules, previous = set(), ""
    for row in rows:
        if previous and row.method != previous:
            rules.add(len(body))
        name = Value(row.label if row.method != previous else "")
        previous = row.method
        gpu = [_number(row.device_mb, ".0f")] if on_gpu else []
        body.append([name, *_speed_values(row, rows), *gpu])
    return TablePart([], header, body, stub=2, rules=frozenset(rules))


def _speed_values(row: Row, rows: Sequence[Row]) -> list[Value]:
    low, high = row.quartiles
    ms = Value(three_digits(row.ms), _range(low, high) if len(row.repeats) > 1 else "")
    memory = [_number(row.prepare_seconds, ".2g"), _number(row.peak_mb, ".0f"), _number(row.extra_mb, ".0f")]
    if row.side != OURS:
        return [Value(SIDES[row.side]), Value(row.precision), ms, *[Value()] * 4, *memory]
    plain, csr = reference_of(row, rows, PLAIN), reference_of(row, rows, CSR)
    judged = verdict(row, plain)
    target = Value(f"≥ {judged[0].ratio:g}") if judged else Value()
    met = Value(
        (MET if judged[1] else NOT_MET) if judged else "", verdict=MET if judged and judged[1] else ""
    )
    own = [Value(count(row.seeds, "seed")), Value(row.precision), ms]
    return [*own, _ratio(row, plain), _ratio(row, csr), target, met, *memory]


def _ratio(row: Row, reference: Row | None) -> Value:
    if reference is None:
        return Value()
    low, high = ratio_range(row, reference)
    text = three_digits(ratio(row, reference))
    return Value(text, _range(low, high) if len(row.repeats) > 1 else "")


def _range(low: float, high: float) -> str:
    return f"{three_digits(low)}–{three_digits(high)}"


def _number(value: float | None, form: str) -> Value:
    return Value() if value is None else Value(format(value, form))


def _memory_limits(rows: Sequence[Row], labels: dict[str, str]) -> list[str]:
    """Whether all of our rows meet the memory limit of a dataset that has one."""
    lines = []
    for data, limit in MEMORY_MB.items():
        peaks = [row.peak_mb for row in rows if row.side == OURS and row.data == data and row.peak_mb]
        if peaks:
            met = MET if max(peaks) <= limit else NOT_MET
            lines.append(
                f"{labels.get(data, data)}: largest peak of ours {max(peaks):.0f} MB, at most {limit:.0f}: {met}."
            )
    return lines
