"""What of the results is shown: one protocol, the tables of accuracies, the flat records behind them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from pagnn_bench.analysis.paper import TABLES
from pagnn_bench.analysis.tables.accuracy import accuracy_table
from pagnn_bench.analysis.tables.layout import Table
from pagnn_bench.analysis.tables.results import Result, Results, in_order, load_results
from pagnn_bench.analysis.tables.timing import REFERENCE, at, measure, timing_protocol
from pagnn_bench.config.arguments import results_folder
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.names import Name
from pagnn_bench.records.store import Store


def read_results(folder: str | None) -> Results:
    """The results below a folder; a folder that was named must exist."""
    return load_results(Store(results_folder(folder)))


def choose_protocol(results: Results, name: str | None) -> str:
    """The protocol to show: the one asked for, or the first there is."""
    have = results.protocols
    if name is not None and name not in have:
        # A search has hundreds of settings: they are named only to those who ask for one of them.
        families = results.families
        choices = families.get(Name.parse(name).plain) or [names[0] for names in families.values()]
        raise RequestError(f"--protocol {name}: choose one of {', '.join(choices) or '(nothing run yet)'}.")
    return name or next(iter(have), "paper")


def accuracy_tables(results: Results, protocol: str, compare: bool = False, abreast: int = 2) -> list[Table]:
    """One table for every missing type that was run; if nothing was, and the paper is asked for, the paper's own."""
    under = results.under(protocol)
    run = {result.key.missing for result in under if result.cell is not None}
    kinds = in_order(run or (TABLES.values() if compare else ()), TABLES.values())
    return [accuracy_table(under, missing, compare, abreast) for missing in kinds]


def flat_records(results: Results, table: str, asked: str | None, protocol: str) -> list[dict[str, Any]]:
    """The flat form: without ``--protocol`` all that was run, and the paper's entries that were not."""
    if table == "timing":
        timed = timing_protocol(results)
        timings = measure(results.under(timed)) if timed else []
        places = [(timing.key.data, timing.key.missing, timing.key.rate) for timing in timings]
        return [timing.record(at(timings, place).get(REFERENCE)) for timing, place in zip(timings, places)]
    chosen: list[Result] = results.under(protocol)
    if asked is None:
        chosen = chosen + [result for result in results.all if result.key.protocol != protocol]
    wanted = {TABLES[table]} if table in TABLES else None
    return [result.record() for result in chosen if wanted is None or result.key.missing in wanted]


def to_json(records: Sequence[dict[str, Any]]) -> str:
    """A list of objects."""
    return json.dumps(records, indent=1, allow_nan=False) + "\n"


def to_csv(records: Sequence[dict[str, Any]]) -> str:
    """A header and one line a record; what is unknown is empty."""
    text = io.StringIO()
    keys = list(dict.fromkeys(key for record in records for key in record))
    writer = csv.DictWriter(text, keys, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()
