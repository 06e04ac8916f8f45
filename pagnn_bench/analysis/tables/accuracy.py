"""Tables 2 and 3 of the paper from our results: methods as rows, datasets x rates as columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pagnn_bench.analysis.paper import DATASETS, METHODS, RATES, TABLES
from pagnn_bench.analysis.tables.captions import (
    CEILING,
    LEGEND,
    SYMBOLS,
    describe_protocol,
    describe_trials,
    usual_trials,
)
from pagnn_bench.analysis.tables.layout import Part, Table, Value, signed
from pagnn_bench.analysis.tables.results import Result, common_masks, in_order, mean_over


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
    usual = usual_trials(run)
    caption = [*describe_protocol(run), *describe_trials(run, usual)]
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
