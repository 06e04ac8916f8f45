"""Tables of accuracy, in the form of the paper's Tables 2 and 3: methods as rows, datasets x rates as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pagnn_bench.analysis.metrics import ACCURACY
from pagnn_bench.analysis.paper import METHODS
from pagnn_bench.analysis.published import Published, published_under
from pagnn_bench.analysis.tables.captions import (
    CEILING,
    SYMBOLS,
    describe_protocol,
    describe_trials,
    legend,
    usual_trials,
)
from pagnn_bench.analysis.tables.layout import Table, TablePart, Value, signed
from pagnn_bench.analysis.tables.results import Result, common_masks, in_order, mean_over
from pagnn_bench.config.names import Name
from pagnn_bench.config.text import count

UNRECORDED = "they were recorded before it was measured, or have nothing to measure it on"


def accuracy_table(
    results: Sequence[Result], missing: str, compare: bool = False, side_by_side: int = 1
) -> Table:
    """Methods x datasets x rates, under one protocol.

    Args:
        results: of one protocol, in the paper's order, with the published entries that were not run.
        missing: the missing type.
        compare: show the published number and the difference under each of ours.
        side_by_side: datasets in one part: two in the paper, one where there is little room.
    """
    here = [result for result in results if result.key.missing == missing]
    attempted = [result for result in here if result.cell is not None]
    protocol = next((result.key.protocol for result in here), "")
    published = published_under(protocol)
    data = in_order((result.key.data for result in attempted or here), published.datasets)
    candidates = here if compare or not attempted else attempted
    entries = [result for result in candidates if result.key.data in data]
    run = [result for result in here if result.mean is not None]
    label = next((result.labels["missing"] for result in entries), missing)
    accuracy = all(result.metric == ACCURACY for result in entries)
    title = _title(published, missing, label) if accuracy else label  # published tables are of accuracies
    unrecorded = sum(not result.is_recorded for result in entries)
    usual, step = usual_trials(run), max(1, side_by_side)
    starts = range(0, len(data), step)
    parts = [_part(entries, data[first : first + step], published, compare, usual) for first in starts]
    covered = data if missing in published.titles else [*published.datasets]
    return Table(
        f"{missing}-{protocol}",
        f"{title}, protocol {protocol}" if protocol else title,
        _caption(run, covered, published, compare, usual, unrecorded),
        parts,
    )


def _title(published: Published, missing: str, label: str) -> str:
    return published.titles.get(missing, f"{label} (not in the paper)")


def _caption(
    run: Sequence[Result],
    data: Sequence[str],
    published: Published,
    compare: bool,
    usual: int | None,
    unrecorded: int,
) -> list[str]:
    caption = [*describe_protocol(run), *(describe_trials(run, usual) if run or not unrecorded else [])]
    if unrecorded:
        caption.append(f"{count(unrecorded, 'cell')} without this metric: {UNRECORDED}.")
    if compare and any(result.verdict for result in run):
        caption.append(legend(published))
        if any(result.summary.masks == 1 for result in run):
            caption.append("The interval of an entry with a single mask covers its seeds only.")
    absent = [name for key, name in published.datasets.items() if key not in data]
    # A published table does not have the user's own graphs.
    if run and 0 < len(absent) < len(published.datasets):
        caption.append(f"Not run: {', '.join(absent)}.")
    return caption


def _part(
    results: Sequence[Result], data: Sequence[str], published: Published, compare: bool, usual: int | None
) -> TablePart:
    """The columns of some datasets."""
    by_place = {(result.key.method, result.key.data, result.key.rate): result for result in results}
    here = (result.key.method for result in results if result.key.data in data)
    methods = in_order(here, published.methods)
    labels = {result.key.method: result.labels["method"] for result in results}
    titles = {result.key.data: result.labels["data"] for result in results}
    columns = [(name, rate) for name in data for rate in _rates(results, published, name)]
    best = {column: _best(by_place, methods, *column) for column in columns}
    rows: list[list[Value]] = []
    rules = set()
    for number, method in enumerate(methods):
        if number and _section(method) != _section(methods[number - 1]):
            rules.add(len(rows))
        line = [by_place.get((method, *column)) for column in columns]
        ours = [_ours(result, usual, method in best[column]) for result, column in zip(line, columns)]
        rows += _compared_rows(labels[method], line, ours) if compare else [[Value(labels[method]), *ours]]
    names = 2 if compare else 1
    spans = [("", names), *((titles[name], sum(column[0] == name for column in columns)) for name in data)]
    header = ["Method", *([""] if compare else []), *(f"{rate:g}" for _, rate in columns)]
    return TablePart(spans, header, rows, names, frozenset(rules))


def _compared_rows(label: str, line: Sequence[Result | None], ours: Sequence[Value]) -> list[list[Value]]:
    """The rows of one method: our numbers, the published ones and the difference, whichever there are."""
    rows = []
    if any(result and result.cell is not None for result in line):
        rows.append([Value("ours"), *ours])
    if any(result and result.paper is not None for result in line):
        [row] = {result.published.row for result in line if result is not None}
        star = "*" if any(result and result.copied for result in line) else ""
        rows.append([Value(f"{row}{star}"), *map(_published, line)])
    if any(result and result.verdict for result in line):
        rows.append([Value("difference"), *map(_difference, line)])
    return [[Value(label if number == 0 else ""), *row] for number, row in enumerate(rows)]


def _section(method: str) -> int:
    """The paper draws a line between its rivals and PaGNN; other methods come below a second one."""
    plain = Name.parse(method).plain
    return 2 if plain not in METHODS else int(plain.startswith("pagnn"))


def _rates(results: Iterable[Result], published: Published, data: str) -> list[float]:
    """The rates that were run on a dataset, and the published ones if the dataset was published."""
    own = {result.key.rate for result in results if result.key.data == data}
    return sorted(own | set(published.rates)) if Name.parse(data).plain in published.datasets else sorted(own)


def _best(
    by_place: dict[tuple[str, str, float], Result], methods: Iterable[str], data: str, rate: float
) -> set[str]:
    """The best methods of a column; none if there is nothing to compare, or if the masks decide which is best.

    Masks vary as much as methods do, so a method that was run on other masks may be ahead by luck: the highest mean
    must also be the highest on common masks. For the same reason a method with a single mask is left out where others
    have more.
    """
    rivals = [method for method in methods if Name.parse(method).plain != CEILING]
    results = {method: by_place.get((method, data, rate)) for method in rivals}
    run = {method: result for method, result in results.items() if result and result.mean is not None}
    several = {method: result for method, result in run.items() if result.summary.masks > 1}
    best = _lowest if any(result.metric.lower_is_better for result in run.values()) else _highest
    compared = several if len(several) > 1 else run
    masks = common_masks(compared.values())
    if len(compared) < 2 or not masks:
        return set()
    metric = next(iter(compared.values())).metric
    own = {method: metric.printed(result.mean or 0.0) for method, result in compared.items()}
    common = {method: metric.printed(mean_over(result, masks)) for method, result in compared.items()}
    return best(own) & best(common)


def _highest(printed: dict[str, str], choose: Callable[..., str] = max) -> set[str]:
    """The methods with the highest mean, as printed."""
    best = choose(printed.values(), key=float)
    return {method for method, mean in printed.items() if mean == best}


def _lowest(printed: dict[str, str]) -> set[str]:
    return _highest(printed, min)


def _ours(result: Result | None, usual: int | None, is_best: bool) -> Value:
    if result is None or result.mean is None:
        failed = result is not None and result.cell is not None and result.is_recorded
        return Value("failed" if failed else "")
    summary, printed = result.summary, result.metric.printed
    small = [] if summary.mask_std is None else [f"±{printed(summary.mask_std)}"]
    if summary.trials != usual:
        small.append(f"n={summary.trials}")
    return Value(printed(result.mean), " ".join(small), bold=is_best)


def _published(result: Result | None) -> Value:
    if result is None or result.paper is None:
        return Value()
    return Value(f"{result.paper:.2f}", "" if result.spread is None else f"±{result.spread:.2f}")


def _difference(result: Result | None) -> Value:
    if result is None or result.verdict is None:
        return Value()
    return Value(signed(result.difference or 0.0), SYMBOLS[result.verdict], verdict=result.verdict)
