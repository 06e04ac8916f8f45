"""Growth as a table: time and memory against size."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from pagnn_bench.analysis.tables.layout import Table, TablePart, Value
from pagnn_bench.bench.document import Document
from pagnn_bench.bench.growth import by_axis, epoch_ms, extra_mb, slope
from pagnn_bench.bench.machine import describe_machine
from pagnn_bench.bench.targets import GROWTH_MEMORY_MB, MET, NOT_MET
from pagnn_bench.config.text import count


def growth_table(document: Document) -> Table:
    """Time and memory against size, with the slope of a line through the logarithms."""
    parts = [_growth_part(name, points) for name, points in by_axis(document).items()]
    method = document["settings"]["method"]
    caption = [
        f"{method} on synthetic graphs. ms: one epoch of all seeds, train step and evaluation, median over "
        f"{count(document['settings']['repeats'], 'round')}; extra: peak memory beyond imports and data.",
        "Slope: of log cost against log size, over all points and over the three largest; 1 is linear growth.",
        *_growth_memory(document["points"]),
        describe_machine(document["machine"]),
    ]
    return Table("growth", "Growth", caption, parts)


def _growth_part(name: str, points: Sequence[dict[str, Any]]) -> TablePart:
    fixed = {
        key: f"{points[0][key]:,} {key}"
        for key in ("nodes", "edges", "features", "hidden", "seeds")
        if len({point[key] for point in points}) == 1
    }
    header = [f"{name} ({', '.join(fixed.values())})", "ms", "prepare s", "peak MB", "extra MB"]
    body = [
        [
            Value(f"{point['value']:,}"),
            Value(f"{epoch_ms(point):.3g}"),
            Value(f"{statistics.median(point['prepare_seconds']):.2f}"),
            Value(f"{statistics.median(point['peak_mb']):.0f}"),
            Value(f"{extra_mb(point):.0f}"),
        ]
        for point in points
    ]
    body += [
        _slopes("slope", points),
        *([_slopes("slope at the end", points[-3:])] if len(points) > 3 else []),
    ]
    return TablePart([], header, body, rules=frozenset({len(points)}))


def _slopes(name: str, points: Sequence[dict[str, Any]]) -> list[Value]:
    values = [point["value"] for point in points]
    costs = {
        "ms": [epoch_ms(point) for point in points],
        "prepare": [statistics.median(point["prepare_seconds"]) for point in points],
        "extra": [extra_mb(point) for point in points],
    }
    slopes = {key: slope(values, numbers) if min(numbers) > 0 else None for key, numbers in costs.items()}
    texts = {key: Value() if value is None else Value(f"{value:.2f}") for key, value in slopes.items()}
    return [Value(name), texts["ms"], texts["prepare"], Value(), texts["extra"]]


def _growth_memory(points: Sequence[dict[str, Any]]) -> list[str]:
    """Whether the largest graph meets its memory limit."""
    largest = max(points, key=lambda point: (point["nodes"], point["edges"]), default=None)
    if largest is None:
        return []
    peak, limit = statistics.median(largest["peak_mb"]), GROWTH_MEMORY_MB
    size = f"{largest['nodes']:,} nodes and {largest['edges']:,} edges"
    return [
        f"Peak memory with {size}: {peak:.0f} MB; at most {limit:.0f}: {MET if peak <= limit else NOT_MET}."
    ]
