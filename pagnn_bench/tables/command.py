"""``pagnn-bench tables``: recorded results in the paper's layout."""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pagnn_bench.arguments import Parser, add_results, results_folder
from pagnn_bench.errors import RequestError
from pagnn_bench.paper import DATASETS, TABLES, paper_datasets
from pagnn_bench.store import Store
from pagnn_bench.summary import count
from pagnn_bench.tables.accuracy import accuracy_table
from pagnn_bench.tables.datasets import data_table
from pagnn_bench.tables.layout import Table
from pagnn_bench.tables.render import to_html, to_latex, to_markdown
from pagnn_bench.tables.results import Result, Results, in_order, load_results
from pagnn_bench.tables.timing import REFERENCE, at, measure, timing_protocol, timing_table

FORMATS = ("md", "latex", "csv", "json", "html")
WRITERS = {"md": to_markdown, "latex": to_latex, "html": to_html}
KINDS = ("2", "3", "timing", "data", "all")


def add_results_options(parser: argparse.ArgumentParser) -> None:
    """What all reading commands share."""
    add_results(parser)
    parser.add_argument(
        "--protocol",
        metavar="NAME",
        help="show this protocol (default: paper where there is one); NAME[key=value] where settings differ",
    )


def read_results(folder: str | None) -> Results:
    """The results below a folder; a folder that was named must exist."""
    return load_results(Store(results_folder(folder)))


def choose_protocol(results: Results, name: str | None) -> str:
    """The protocol to show: the one asked for, or the first there is."""
    have = results.protocols
    if name is not None and name not in have:
        # A search has hundreds of settings: they are named only to those who ask for one of them.
        families = results.families
        choices = families.get(name.partition("[")[0]) or [names[0] for names in families.values()]
        raise RequestError(f"--protocol {name}: choose one of {', '.join(choices) or '(nothing run yet)'}.")
    return name or next(iter(have), "paper")


def tables_command(arguments: Sequence[str]) -> int:
    """Print or write tables; the exit code."""
    options = _parser().parse_args(arguments)
    results = read_results(options.results)
    protocol = choose_protocol(results, options.protocol)
    if options.format in ("json", "csv"):
        records = flat_records(results, options.table, options.protocol, protocol)
        text = to_json(records) if options.format == "json" else to_csv(records)
    else:
        tables = _tables(results, options, protocol)
        text = "\n".join(map(WRITERS[options.format], tables))
        if options.format == "md":
            text = (text + _closing(results, protocol, options.results or "results")).lstrip("\n")
    if options.output is None:
        print(text, end="")
    else:
        write_text(options.output, text)
    return 0


def write_text(name: str | Path, text: str) -> None:
    """Write a file that a user asked for."""
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise RequestError(f"-o {name}: cannot be written ({error.strerror}).") from error


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="pagnn-bench tables", description="Recorded results in the layout of the paper.")
    parser.add_argument(
        "--table",
        choices=KINDS,
        default="all",
        help="2 = whole nodes missing, 3 = single entries missing, timing = time per epoch, data = datasets",
    )
    parser.add_argument("--format", choices=FORMATS, default="md", help="md is aligned for the terminal")
    parser.add_argument(
        "--compare", choices=("paper",), help="set the paper's numbers and a verdict beside ours"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write to a file instead of the terminal")
    add_results_options(parser)
    return parser


def _tables(results: Results, options: argparse.Namespace, protocol: str) -> list[Table]:
    compare, abreast = bool(options.compare), 1 if options.format == "md" else 2
    tables = []
    under = results.under(protocol)
    if options.table in TABLES:
        tables.append(accuracy_table(under, TABLES[options.table], compare, abreast))
    elif options.table == "all":
        tables += accuracy_tables(results, protocol, compare, abreast)
    timed = timing_protocol(results)
    if options.table == "timing" or (options.table == "all" and timed):
        tables.append(timing_table(measure(results.under(timed)) if timed else [], timed))
    if options.table == "data":
        tables.append(data_table(paper_datasets(), our_datasets()))
    return tables


def accuracy_tables(results: Results, protocol: str, compare: bool = False, abreast: int = 2) -> list[Table]:
    """One table for every missing type that was run; if nothing was, and the paper is asked for, the paper's own."""
    under = results.under(protocol)
    run = {result.key.missing for result in under if result.cell is not None}
    kinds = in_order(run or (TABLES.values() if compare else ()), TABLES.values())
    return [accuracy_table(under, missing, compare, abreast) for missing in kinds]


def our_datasets() -> dict[str, dict[str, int]]:
    """Counts of the paper's graphs as they are trained on, of those whose files are at hand; fetches nothing."""
    from omegaconf import OmegaConf

    from pagnn_bench.data import load_graph
    from pagnn_bench.data.files import TABLE, data_root, file_state

    found = {}
    for name in DATASETS:
        text = (
            resources.files("pagnn_bench.conf").joinpath("data", f"{name}.yaml").read_text(encoding="utf-8")
        )
        config: Any = OmegaConf.to_container(OmegaConf.create(text), resolve=True)
        root = data_root(config["root"])
        at_hand = all(
            any(all(file_state(root, *file) == "ok" for file in files.items()) for files in alternatives)
            for alternatives in TABLE[name].values()
        )
        if at_hand:
            graph = load_graph({**config, "root": str(root)})
            counts = (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes)
            found[name] = dict(zip(("nodes", "edges", "features", "classes"), counts))
    return found


def flat_records(results: Results, table: str, asked: str | None, protocol: str) -> list[dict[str, Any]]:
    """The flat form: without ``--protocol`` all that was run, and the paper's entries that were not."""
    if table == "timing":
        timed = timing_protocol(results)
        timings = measure(results.under(timed)) if timed else []
        places = [(timing.key.data, timing.key.missing, timing.key.rate) for timing in timings]
        return [timing.record(at(timings, place).get(REFERENCE)) for timing, place in zip(timings, places)]
    if table == "data":
        ours = our_datasets()
        return [
            {"data": name, **paper, **{f"our_{key}": value for key, value in ours.get(name, {}).items()}}
            for name, paper in paper_datasets().items()
        ]
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


def _closing(results: Results, protocol: str, folder: str) -> str:
    """What else there is, and what went wrong."""
    lines = []
    if not results.all:
        lines.append(
            f"Nothing has been run yet: there are no results in {folder}. Try: pagnn-bench run experiment=smoke"
        )
    for family, names in results.families.items():
        others = [name for name in names if name != protocol]
        cells = sum(result.key.protocol in others for result in results.all)
        if len(others) == 1:
            lines.append(
                f"Also there: {count(cells, 'cell')} under protocol {others[0]} (--protocol '{others[0]}')."
            )
        elif others:
            settings = f"{len(others)} settings of protocol {family} (such as --protocol '{others[-1]}')"
            lines.append(f"Also there: {count(cells, 'cell')} under {settings}.")
    broken = sum(bool(result.failures) for result in results.all)
    if broken:
        lines.append(f"{count(broken, 'cell')} with failed batches: pagnn-bench report lists them.")
    if results.damaged:
        lines.append(f"{count(len(results.damaged), 'file')} could not be read and do not count.")
    return "\n" + "\n".join(lines) + "\n" if lines else ""
