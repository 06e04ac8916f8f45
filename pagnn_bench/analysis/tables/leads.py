"""How far PaGNN-N is ahead of every rival, by protocol and rate: which conclusions survive every protocol."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from pagnn_bench.analysis.paper import DATASETS, METHODS, RATES, TABLES, paper_entries
from pagnn_bench.analysis.tables.layout import Table, TablePart, Value, signed
from pagnn_bench.analysis.tables.results import Place, Result, Results, by_method, paired_differences

OWN = "pagnn_n"
RIVALS = ("mf", "vae", "gain", "sat", "gcnmf", "fp", "pcfi")
# The protocols that answer the question, and what a reader may call them.
PROTOCOLS = {"paper": "as published", "tuned": "tuned alike", "shared": "one setting for all"}
PRINTED = "the paper's numbers"
CITATION = ("cora", "citeseer")


def leads_table(results: Results, datasets: Sequence[str] = CITATION) -> Table | None:
    """Mean lead of PaGNN-N by rival, protocol and rate, over these datasets and both missing types; None without any.

    Leads are paired: on the masks that both methods have. An entry that lacks some of its cells says how many it has.
    """
    rows: list[list[Value]] = []
    rules = set()
    by_protocol = {protocol: by_method(results.under(protocol)) for protocol in PROTOCOLS}
    labels = {result.key.method: result.labels["method"] for result in results.all}
    for rival in RIVALS:
        lines = list(_lines(rival, by_protocol, datasets))
        if len(lines) > (rival in METHODS):  # more than the paper's own numbers
            rules.add(len(rows))
            name = labels.get(rival, METHODS.get(rival, rival))
            rows += [[Value(name if k == 0 else ""), *line] for k, line in enumerate(lines)]
    if not rows:
        return None
    where = ", ".join(DATASETS[name] for name in datasets)
    caption = [
        f"Points by which PaGNN-N is ahead (test accuracy, mean of {where} and both missing types; SAT has type 1 "
        "only), paired on the same masks; in brackets the number of cells run, where some were not.",
    ]
    header = [f"{METHODS[OWN]} ahead of", "each method …", *(f"{rate:g}" for rate in RATES)]
    return Table("leads", "What survives", caption, [TablePart([], header, rows, 2, frozenset(rules - {0}))])


def _lines(
    rival: str, by_protocol: dict[str, dict[str, dict[Place, Result]]], datasets: Sequence[str]
) -> Iterator[list[Value]]:
    """The rows of one rival: the paper's, then one per protocol under which it was run."""
    if rival in METHODS:
        entries = paper_entries()
        printed = {
            rate: [
                entries[missing, data, OWN, rate].accuracy - entries[missing, data, rival, rate].accuracy
                for missing, data in _places(datasets)
                if (missing, data, rival, rate) in entries
            ]
            for rate in RATES
        }
        yield [Value(PRINTED), *(Value(signed(statistics.fmean(printed[rate]), 1)) for rate in RATES)]
    for protocol, name in PROTOCOLS.items():
        ours, theirs = (by_protocol[protocol].get(method, {}) for method in (OWN, rival))
        line = [Value(name)]
        for rate in RATES:
            wanted = [(m, d, rate) for m, d in _places(datasets) if (rival, m) != ("sat", "type2")]
            both = [place for place in wanted if place in ours and place in theirs]
            differences = [paired_differences(ours[place], theirs[place]) for place in both]
            means = [statistics.fmean(by_mask) for by_mask in differences if by_mask]
            coverage = f"({len(means)} of {len(wanted)})" if len(means) < len(wanted) else ""
            line.append(Value(signed(statistics.fmean(means), 1), coverage) if means else Value())
        if any(value.text for value in line[1:]):
            yield line


def _places(datasets: Sequence[str]) -> list[tuple[str, str]]:
    return [(missing, data) for missing in TABLES.values() for data in datasets]
