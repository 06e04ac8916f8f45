"""Which results are shown: one protocol, its accuracy tables, the flat records behind them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from pagnn_bench.analysis.paper import TABLES
from pagnn_bench.analysis.published import published_under
from pagnn_bench.analysis.tables.accuracy import accuracy_table
from pagnn_bench.analysis.tables.layout import Table
from pagnn_bench.analysis.tables.results import Result, Results, in_order, load_results
from pagnn_bench.analysis.tables.timing import read_timings
from pagnn_bench.config.arguments import results_folder
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.names import Name
from pagnn_bench.records.store import Store


def read_results(folder: str | None) -> Results:
    """The results in a folder; a folder that was named must exist."""
    return load_results(Store(results_folder(folder)))


def choose_protocol(results: Results, name: str | None, compare: str | None = None) -> str:
    """The protocol to show: the requested one, or the first with results that ``compare`` has numbers for."""
    have = results.protocols
    if name is not None and name not in have:
        # A search has hundreds of settings: list them only if the request names one of them.
        families = results.families
        choices = families.get(Name.parse(name).plain) or [names[0] for names in families.values()]
        raise RequestError(f"--protocol {name}: choose one of {', '.join(choices) or '(nothing run yet)'}.")
    if name is None:
        fitting = [protocol for protocol in have if compare in (None, published_under(protocol).name)]
        return next(iter(fitting), compare or "paper")
    if compare not in (None, suited := published_under(name).name):
        raise RequestError(
            f"--compare {compare}: protocol {name} has other published numbers; use --compare {suited}."
        )
    return name


def accuracy_tables(results: Results, protocol: str, compare: bool = False, abreast: int = 2) -> list[Table]:
    """One table per missing type that was run; if none was and ``compare`` is set, the published ones."""
    under = results.under(protocol)
    run = {result.key.missing for result in under if result.cell is not None}
    kinds = in_order(run or (TABLES.values() if compare else ()), TABLES.values())
    return [accuracy_table(under, missing, compare, abreast) for missing in kinds]


def flat_records(results: Results, table: str, asked: str | None, protocol: str) -> list[dict[str, Any]]:
    """The entries of the JSON and CSV forms: of all protocols unless one was requested."""
    if table == "timing":
        return read_timings(results).records()
    chosen = everything(results, protocol) if asked is None else results.under(protocol)
    wanted = {TABLES[table]} if table in TABLES else None
    return [result.record() for result in chosen if wanted is None or result.key.missing in wanted]


def everything(results: Results, protocol: str) -> list[Result]:
    """What was run under every protocol, this one first and with the published entries that were not run."""
    return results.under(protocol) + [result for result in results.all if result.key.protocol != protocol]


def to_json(content: Sequence[dict[str, Any]] | dict[str, Any]) -> str:
    """A list of objects, or one object."""
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def to_csv(records: Sequence[dict[str, Any]]) -> str:
    """A header and one line per record; unknown values are empty."""
    text = io.StringIO()
    keys = list(dict.fromkeys(key for record in records for key in record))
    writer = csv.DictWriter(text, keys, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()
