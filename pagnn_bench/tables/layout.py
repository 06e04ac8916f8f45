"""Tables as plain data, in the paper's layout; how they are written down is for :mod:`pagnn_bench.tables.render`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pagnn_bench.cell import Cell
from pagnn_bench.paper import DATASETS, METHODS, RATES, TABLES
from pagnn_bench.summary import count
from pagnn_bench.tables.results import (
    DIFFERS,
    INSIDE,
    TOLERATED,
    TOO_FEW,
    Result,
    common_masks,
    in_order,
    mean_over,
)
from pagnn_bench.tables.timing import REFERENCE, Timing, at, timed_places

SYMBOLS = {INSIDE: "=", TOLERATED: "≈", DIFFERS: "≠", TOO_FEW: "?"}
LEGEND = (
    "Difference: = the paper's number lies inside our 95 % interval, ≈ within tolerance (±0.5 up to rate 0.5, "
    "±1 up to 0.7, ±2.5 above), ≠ differs, ? too few masks to tell: inside an interval that reaches over two "
    "tolerances to each side, or a single mask that is at most four tolerances off. * copied by the paper from the "
    "GCNmf paper."
)
CEILING = "full"  # sees the hidden features: shown, but never the best


@dataclass(frozen=True)
class Value:
    """An entry: its text, what stands behind it in small print, and a verdict that may colour it."""

    text: str = ""
    small: str = ""
    bold: bool = False
    verdict: str = ""


@dataclass(frozen=True)
class Part:
    """Some columns of a table with their rows.

    Attributes:
        spans: headings above the header, as (text, number of columns), from the first column on.
        header: one text a column.
        rows: the entries, the first ``stub`` of a row being its names.
        stub: number of columns with names, left aligned.
        rules: rows before which a line is drawn.
    """

    spans: list[tuple[str, int]]
    header: list[str]
    rows: list[list[Value]]
    stub: int = 1
    rules: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Table:
    """A table: ``name`` for files and references, ``caption`` as sentences."""

    name: str
    title: str
    caption: list[str]
    parts: list[Part] = field(default_factory=list)


def accuracy_table(
    results: Sequence[Result], missing: str, compare: bool = False, side_by_side: int = 1
) -> Table:
    """Methods x datasets x rates, under one protocol.

    Args:
        results: of one protocol, in the paper's order, with the paper's entries that were not run.
        missing: the missing type.
        compare: the paper's number and the difference under each of ours.
        side_by_side: datasets in one part: two in the paper, one where there is little room.
    """
    here = [result for result in results if result.key.missing == missing]
    run = [result for result in here if result.mean is not None]
    tried = [result for result in here if result.cell is not None]
    data = in_order((result.key.data for result in tried or here), DATASETS)
    shown = [result for result in (here if compare or not tried else tried) if result.key.data in data]
    number = next((number for number, name in TABLES.items() if name == missing), None)
    label = next((result.labels["missing"] for result in shown), missing)
    title = f"Table {number}: {label}" if number else f"{label} (not in the paper)"
    protocol = next((result.key.protocol for result in shown), "")
    usual = _usual_trials(run)
    caption = [*describe_protocol(run), *_describe_trials(run, usual)]
    if compare and any(result.verdict for result in run):
        caption.append(LEGEND)
        if any(result.summary.masks == 1 for result in run):
            caption.append("The interval of an entry with a single mask covers its seeds only.")
    if absent := [name for key, name in DATASETS.items() if number and run and key not in data]:
        caption.append(f"Not run: {', '.join(absent)}.")
    step = max(1, side_by_side)
    parts = [
        _accuracy_part(shown, data[first : first + step], compare, usual)
        for first in range(0, len(data), step)
    ]
    return Table(
        f"{missing}-{protocol}", f"{title}, protocol {protocol}" if protocol else title, caption, parts
    )


def _accuracy_part(results: Sequence[Result], data: Sequence[str], compare: bool, usual: int | None) -> Part:
    found = {(result.key.method, result.key.data, result.key.rate): result for result in results}
    methods = in_order((result.key.method for result in results if result.key.data in data), METHODS)
    labels = {result.key.method: result.labels["method"] for result in results}
    titles = {result.key.data: result.labels["data"] for result in results}
    columns = [(name, rate) for name in data for rate in _rates(results, name)]
    best = {column: _best(found, methods, *column) for column in columns}
    rows: list[list[Value]] = []
    rules = set()
    for number, method in enumerate(methods):
        line = [found.get((method, *column)) for column in columns]
        if rows and _section(method) != _section(methods[number - 1]):
            rules.add(len(rows))
        ours = [_ours(result, usual, method in best[column]) for result, column in zip(line, columns)]
        name = Value(labels[method])
        if not compare:
            rows.append([name, *ours])
            continue
        if any(result and result.cell is not None for result in line):
            rows.append([name, Value("ours"), *ours])
            name = Value()
        if any(result and result.paper is not None for result in line):
            star = "*" if any(result and result.copied for result in line) else ""
            rows.append([name, Value(f"paper{star}"), *map(_paper, line)])
        if any(result and result.verdict for result in line):
            rows.append([Value(), Value("difference"), *map(_difference, line)])
    spans = [("", 2 if compare else 1)]
    spans += [(titles[name], sum(column[0] == name for column in columns)) for name in data]
    header = ["Method", *([""] if compare else []), *(f"{rate:g}" for _, rate in columns)]
    return Part(spans, header, rows, 2 if compare else 1, frozenset(rules))


def _section(method: str) -> int:
    """The paper draws a line between its rivals and PaGNN; what it does not have comes below another one."""
    base = method.partition("[")[0]
    return 2 if base not in METHODS else int(base.startswith("pagnn"))


def _rates(results: Iterable[Result], data: str) -> list[float]:
    own = {result.key.rate for result in results if result.key.data == data}
    return sorted(own | set(RATES)) if data.partition("[")[0] in DATASETS else sorted(own)


def _best(
    found: dict[tuple[str, str, float], Result], methods: Iterable[str], data: str, rate: float
) -> set[str]:
    """The best methods of a column; none if there is nothing to compare, or if it depends on the masks who is best.

    On masks of its own a method may be ahead by its luck with them, since they vary as much as methods do: the highest
    mean has to be the highest on common masks, too. For the same reason a method with a single mask is left out where
    others have more.
    """
    rivals = [method for method in methods if method.partition("[")[0] != CEILING]
    results = {method: found[method, data, rate] for method in rivals if (method, data, rate) in found}
    run = {method: result for method, result in results.items() if result.mean is not None}
    several = {method: result for method, result in run.items() if result.summary.masks > 1}
    compared = several if len(several) > 1 else run
    masks = common_masks(compared.values())
    if len(compared) < 2 or not masks:
        return set()
    return _highest({method: result.mean or 0.0 for method, result in compared.items()}) & _highest(
        {method: mean_over(result, masks) for method, result in compared.items()}
    )


def _highest(means: dict[str, float]) -> set[str]:
    """Those with the highest mean, as it is printed."""
    printed = {method: f"{mean:.2f}" for method, mean in means.items()}
    best = max(printed.values(), key=float)
    return {method for method, mean in printed.items() if mean == best}


def _ours(result: Result | None, usual: int | None, is_best: bool) -> Value:
    if result is None or result.mean is None:
        return Value("failed") if result is not None and result.cell is not None else Value()
    summary = result.summary
    small = [] if summary.mask_std is None else [f"±{summary.mask_std:.2f}"]
    if summary.trials != usual:
        small.append(f"n={summary.trials}")
    return Value(f"{result.mean:.2f}", " ".join(small), bold=is_best)


def _paper(result: Result | None) -> Value:
    return Value(f"{result.paper:.2f}") if result is not None and result.paper is not None else Value()


def _difference(result: Result | None) -> Value:
    if result is None or result.verdict is None:
        return Value()
    return Value(signed(result.difference or 0.0), SYMBOLS[result.verdict], verdict=result.verdict)


def three_digits(value: float) -> str:
    """Three significant digits without an exponent: 0.994, 25.5, 1950."""
    return f"{float(f'{value:.3g}'):.0f}" if value >= 100 else f"{value:.3g}"


def signed(value: float, digits: int = 2) -> str:
    """With its sign, but never ``-0.00``."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def _usual_trials(results: Iterable[Result]) -> int | None:
    counted = Counter(result.summary.trials for result in results)
    return counted.most_common(1)[0][0] if counted else None


def _describe_trials(results: Sequence[Result], usual: int | None) -> list[str]:
    if not results:
        return ["Nothing run yet."]
    alike = len({frozenset(result.summary.by_mask) for result in results}) == 1
    best = (
        "best"
        if alike
        else "highest if it is the highest on common masks, too, of the methods with several where there are such"
    )
    text = [
        f"Test accuracy in percent: mean of the means of masks, ± their standard deviation; in bold the {best}."
    ]
    if any(result.key.method.partition("[")[0] == CEILING for result in results):
        text.append("Full features sees what is hidden, and is not compared.")
    every = "in every entry" if all(result.summary.trials == usual for result in results) else "unless noted"
    masks = {result.summary.masks for result in results if result.summary.trials == usual}
    on = count(masks.pop(), "mask") if len(masks) == 1 else f"{min(masks)} to {max(masks)} masks"
    text.append(f"n = {count(usual or 0, 'trial')} on {on} {every}.")
    if failed := sum(result.summary.failed for result in results):
        text.append(f"{count(failed, 'trial')} failed and left out.")
    return text


def describe_protocol(results: Sequence[Result]) -> list[str]:
    """Training, stopping rule and split in words; where datasets differ, each with its own value."""
    cells = {result.labels["data"]: result.cell for result in results if result.cell is not None}
    if not cells:
        return []
    texts = []
    for key, words in {
        "lr": "learning rate {}",
        "weight_decay": "weight decay {}",
        "stopping": "stopping rule {}",
        "patience": "patience {}",
        "max_epochs": "at most {} epochs",
    }.items():
        texts.append(words.format(_each({name: _setting(cell, key) for name, cell in cells.items()})))
    splits = {name: cell.data.get("split") for name, cell in cells.items()}
    return [f"Training: {', '.join(texts)}.", f"Split: {_each(splits)}."]


def _setting(cell: Cell, key: str) -> object:
    chosen = (cell.protocol.get("tuning") or {}).get("chosen", {})
    return "chosen per cell" if f"protocol.{key}" in chosen else cell.protocol.get(key)


def _each(values: dict[str, object]) -> str:
    texts = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in values.items()}
    names: dict[str, list[str]] = {}
    for name, text in texts.items():
        names.setdefault(text, []).append(name)
    if len(names) == 1:
        return next(iter(names))
    return ", ".join(f"{text} ({', '.join(which)})" for text, which in names.items())


def timing_table(timings: Sequence[Timing], protocol: str | None) -> Table:
    """Milliseconds per epoch: methods x datasets, absolute and as ratio to MF."""
    places = timed_places(timings)
    methods = in_order((timing.key.method for timing in timings), METHODS)
    labels = {timing.key.method: timing.labels["method"] for timing in timings}
    names = {timing.key.data: timing.labels["data"] for timing in timings}
    one_kind = len({place[1:] for place in places}) == 1
    heads = [
        names[data] if one_kind else f"{names[data]} {missing} {rate:g}" for data, missing, rate in places
    ]
    lines = [(method, [at(timings, place) for place in places]) for method in methods]
    times = [
        [Value(labels[method]), *(_milliseconds(here.get(method)) for here in line)] for method, line in lines
    ]
    ratios = [
        [Value(labels[method]), *(_ratio(here.get(method), here.get(REFERENCE)) for here in line)]
        for method, line in lines
    ]
    repeats = sorted({len(timing.repeats) for timing in timings})
    caption = (
        [
            "Milliseconds per training epoch of one network, evaluation excluded: median and quartiles over "
            f"{count(repeats[0], 'repeat') if len(repeats) == 1 else f'{repeats[0]} to {repeats[-1]} repeats'}; "
            "(preparation + training) / epochs, where preparation is all that a method does once per mask: filling "
            "in, fitting, aggregating.",
            f"Protocol {protocol}" + (f", {places[0][1]}, rate {places[0][2]:g}." if one_kind else "."),
            f"Measured on: {'; '.join(sorted({where for timing in timings for where in timing.where}))}.",
        ]
        if timings
        else ["No trial has been timed alone yet: pagnn-bench run -m experiment=timing"]
    )
    header = ["Method", *heads]
    parts = [
        Part([("", 1), (title, len(places))], header, rows)
        for title, rows in (("ms per epoch", times), ("relative to MF", ratios))
        if any(value.text for row in rows for value in row[1:])
    ]
    return Table("timing", "Time per epoch", caption, parts)


def _milliseconds(timing: Timing | None) -> Value:
    if timing is None:
        return Value()
    low, high = timing.quartiles
    quartiles = f"{three_digits(low)}–{three_digits(high)}" if len(timing.repeats) > 1 else ""
    return Value(three_digits(timing.median), quartiles)


def _ratio(timing: Timing | None, reference: Timing | None) -> Value:
    return Value(f"{timing.median / reference.median:.2f}") if timing and reference else Value()


def data_table(paper: dict[str, dict[str, int]], ours: dict[str, dict[str, int]]) -> Table:
    """Table 1 of the paper, and our counts of the graphs that are at hand."""
    keys = ("nodes", "edges", "features", "classes")
    rows = []
    for name, published in paper.items():
        rows.append([Value(DATASETS[name]), Value("paper"), *(Value(f"{published[key]}") for key in keys)])
        if name in ours:
            rows.append([Value(), Value("ours"), *(Value(f"{ours[name][key]}") for key in keys)])
    caption = ["Edges: the paper quotes raw lists; the graph trained on is simple and undirected."]
    if absent := [DATASETS[name] for name in paper if name not in ours]:
        caption.append(f"Not at hand here: {', '.join(absent)} (pagnn-bench data fetch).")
    header = ["Dataset", "", "Nodes", "Edges", "Attributes", "Classes"]
    return Table("data", "Table 1: datasets", caption, [Part([], header, rows, stub=2)])
