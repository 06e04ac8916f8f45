"""Tables about masks that are not random: what they cost each method, and what they reveal about the labels."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from pagnn_bench.analysis.paper import DATASETS
from pagnn_bench.analysis.stats import mean_interval
from pagnn_bench.analysis.tables.layout import Table, TablePart, Value, signed
from pagnn_bench.analysis.tables.results import in_order
from pagnn_bench.analysis.tables.study import Row, Study, mean_of, place

MASK_FACT = "mask_label_share"
EXPLAINED = (
    "Explained: share of the label entropy that a node's mask alone explains, mean over masks. It is a lower "
    "bound on what the mask reveals; empty where it was not recorded."
)


def cost_table(study: Study) -> Table:
    """Mechanisms x rates as rows, methods as columns: accuracy relative to random masks, averaged over graphs."""
    methods = study.methods(study.mechanisms)
    names = {row.data: row.label for row in study.mechanisms}
    groups: dict[tuple[str, float], list[Row]] = {}
    for row in sorted(study.mechanisms, key=lambda row: (place(row), row.rate)):
        groups.setdefault((row.title, row.rate), []).append(row)
    lines: list[list[Value]] = []
    rules: set[int] = set()
    previous = ""
    for (title, rate), rows in groups.items():
        if title != previous:
            rules.add(len(lines))
        shares = [share for row in rows if (share := row.mask_fact(MASK_FACT)) is not None]
        explained = Value(_percent(statistics.fmean(shares) if shares else None))
        head = [Value(title if title != previous else ""), Value(f"{rate:g}"), explained]
        lines.append([*head, *(_mean_cost(study, rows, method, len(names)) for method in methods)])
        previous = title
    graphs = ", ".join(names[data] for data in in_order(names, DATASETS))
    caption = [
        "Test accuracy under a mechanism minus that on random masks that hide as much (type 1 for whole nodes, type 2 "
        f"for single entries), in points, mean over {graphs}; in brackets the number of graphs with both, where some "
        "lack one. Each is compared on masks that all methods have.",
        EXPLAINED,
    ]
    header = ["hidden", "rate", "explained", *map(study.label, methods)]
    return Table(
        "costs", "What mechanisms cost", caption, [TablePart([], header, lines, 2, frozenset(rules - {0}))]
    )


def _mean_cost(study: Study, rows: Sequence[Row], method: str, graphs: int) -> Value:
    costs = [cost for row in rows if (cost := study.cost(row, method)) is not None]
    coverage = f"({len(costs)} of {graphs})" if len(costs) < graphs else ""
    return Value(signed(statistics.fmean(costs), 1), coverage) if costs else Value()


def mask_table(study: Study) -> Table:
    """Graphs x mechanisms x rates: what the mask reveals about the labels, and what seeing it is worth."""
    rates = sorted({row.rate for row in study.rows.values()})
    lines = list(dict.fromkeys((row.data, row.title) for row in study.rows.values()))
    rows: list[list[Value]] = []
    rules: set[int] = set()
    previous = ""
    for data, title in lines:
        values: list[Value] = []
        for rate in rates:
            row = study.rows.get((data, rate, title))
            values += _value_of_mask(study, row) if row else [Value()] * 3
        if any(value.text for value in values):
            if data != previous:
                rules |= {len(rows)} if rows else set()
            label = next(row.label for row in study.rows.values() if row.data == data)
            rows.append([Value(label if data != previous else ""), Value(title), *values])
            previous = data
    caption = [
        EXPLAINED,
        "Ahead: points by which Mask concat is ahead of Zero filling on the same masks, with the 95 % interval. The "
        "two differ only in whether they see the mask.",
        "By the mechanism: the same, minus its value on random masks, which reveal nothing about labels.",
    ]
    spans = [("", 2), *((f"{rate:g}", 3) for rate in rates)]
    header = ["", "hidden", *(name for _ in rates for name in ("explained", "ahead", "by the mechanism"))]
    return Table("masks", "What masks reveal", caption, [TablePart(spans, header, rows, 2, frozenset(rules))])


def _value_of_mask(study: Study, row: Row) -> list[Value]:
    """What the mask explains, what seeing it is worth, and how much more that is than on random masks."""
    explained, leads = Value(_percent(row.mask_fact(MASK_FACT))), row.mask_leads
    if not leads:
        return [explained, Value(), Value()]
    lead, interval = statistics.fmean(leads), mean_interval([[each] for each in leads])
    between = f"[{signed(interval.low, 1)}, {signed(interval.high, 1)}]" if interval else ""
    ahead = Value(signed(lead, 1), between)
    random = study.at_random(row)
    if random is None or random is row or not random.mask_leads:
        return [explained, ahead, Value()]
    return [explained, ahead, Value(signed(lead - statistics.fmean(random.mask_leads), 1))]


def mechanism_table(study: Study) -> Table:
    """One part per graph and rate: missing types x methods, with the difference from random masks."""
    parts = []
    for data, rate in study.settings:
        here = [row for row in study.rows.values() if (row.data, row.rate) == (data, rate)]
        parts.append(_part(study, here, f"{here[0].label}, rate {rate:g}"))
    caption = [
        "Test accuracy in percent: mean of the means of masks, ± their standard deviation; in brackets the difference "
        "from random masks that hide as much, on masks that all methods have.",
        "Drawn: share of entries actually hidden. The rate of a shift is that of its incomplete side.",
    ]
    return Table("mechanisms", "Mechanisms", caption, parts)


def unlabelled_table(study: Study) -> Table:
    """Graphs x methods where only training nodes have attributes."""
    caption = ["Test accuracy in percent: mean of the means of splits, ± their standard deviation."]
    part = _part(study, study.unlabelled, "", by_graph=True)
    return Table("unlabelled", "Training nodes only", caption, [part])


def _part(study: Study, rows: Sequence[Row], corner: str, by_graph: bool = False) -> TablePart:
    methods = study.methods(rows)
    lines = [
        [
            Value(row.label if by_graph else row.title),
            Value(_percent(row.mask_fact("missing_share"))),
            *(_accuracy(study, row, method) for method in methods),
        ]
        for row in rows
    ]
    return TablePart([], [corner, "drawn", *map(study.label, methods)], lines)


def _accuracy(study: Study, row: Row, method: str) -> Value:
    result = row.results.get(method)
    if result is None:
        return Value()
    small = [] if result.summary.mask_std is None else [f"±{result.summary.mask_std:.1f}"]
    if "by" in row.cell.missing and (cost := study.cost(row, method)) is not None:
        small.append(f"({signed(cost, 1)})")
    return Value(f"{mean_of(result):.1f}", " ".join(small))


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"
