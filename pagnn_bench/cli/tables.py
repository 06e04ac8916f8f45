"""``pagnn-bench tables``: recorded results in the paper's layout."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pagnn_bench.analysis.metrics import ACCURACY, METRICS, find_metric
from pagnn_bench.analysis.paper import DATASETS, TABLES, paper_datasets
from pagnn_bench.analysis.published import published
from pagnn_bench.analysis.tables.accuracy import accuracy_table
from pagnn_bench.analysis.tables.datasets import data_table
from pagnn_bench.analysis.tables.layout import Table
from pagnn_bench.analysis.tables.render import to_html, to_latex, to_markdown
from pagnn_bench.analysis.tables.results import Results
from pagnn_bench.analysis.tables.selection import (
    accuracy_tables,
    choose_protocol,
    flat_records,
    read_results,
    to_csv,
    to_json,
)
from pagnn_bench.analysis.tables.timing import read_timings, timing_table
from pagnn_bench.cli.options import add_results_options, nothing_run
from pagnn_bench.config.arguments import Parser
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.text import count

FORMATS = ("md", "latex", "csv", "json", "html")
WRITERS = {"md": to_markdown, "latex": to_latex, "html": to_html}
KINDS = ("2", "3", "timing", "data", "all")


def tables_command(arguments: Sequence[str]) -> int:
    """Print or write tables and return the exit code."""
    options = _parser().parse_args(arguments)
    metric = find_metric(options.metric)
    if metric != ACCURACY and options.compare:
        raise RequestError(
            f"--compare {options.compare}: only accuracies were published; leave out --metric {metric.name}."
        )
    if metric != ACCURACY and options.table in ("timing", "data"):
        raise RequestError(
            f"--metric {metric.name}: works for tables of results only; leave out --table {options.table}."
        )
    results = read_results(options.results).by(metric)
    protocol = choose_protocol(results, options.protocol, options.compare)
    if options.format in ("json", "csv"):
        data = options.table == "data"
        records = (
            _data_records() if data else flat_records(results, options.table, options.protocol, protocol)
        )
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
    """Write a file; refuses a path that cannot be written."""
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
        "--compare",
        choices=tuple(published()),
        help="show published numbers and a verdict beside ours: the paper's, or those of later papers with "
        "protocol=extreme",
    )
    parser.add_argument(
        "--metric",
        metavar="NAME",
        default=ACCURACY.name,
        help=f"what to show: {', '.join(METRICS)}; empty if not recorded",
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
    if options.table in ("timing", "all") and options.metric == ACCURACY.name:
        timings = read_timings(results)
        tables += [timing_table(timings)] if timings.all or options.table == "timing" else []
    if options.table == "data":
        tables.append(data_table(paper_datasets(), our_datasets()))
    return tables


def our_datasets() -> dict[str, dict[str, int]]:
    """Counts of the paper's graphs as we train on them, if their files are present; fetches nothing."""
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
        present = all(
            any(all(file_state(root, *file) == "ok" for file in files.items()) for files in alternatives)
            for alternatives in TABLE[name].values()
        )
        if present:
            graph = load_graph({**config, "root": str(root)})
            counts = (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes)
            found[name] = dict(zip(("nodes", "edges", "features", "classes"), counts))
    return found


def _data_records() -> list[dict[str, Any]]:
    ours = our_datasets()
    return [
        {"data": name, **paper, **{f"our_{key}": value for key, value in ours.get(name, {}).items()}}
        for name, paper in paper_datasets().items()
    ]


def _closing(results: Results, protocol: str, folder: str) -> str:
    """Notes on other protocols, failures and damaged files."""
    lines = []
    if not results.all:
        lines.append(nothing_run(folder))
    for family, names in results.families.items():
        others = [name for name in names if name != protocol]
        cells = sum(result.key.protocol in others for result in results.all)
        if len(others) == 1:
            lines.append(
                f"Also recorded: {count(cells, 'cell')} under protocol {others[0]} (--protocol '{others[0]}')."
            )
        elif others:
            settings = f"{len(others)} settings of protocol {family} (such as --protocol '{others[-1]}')"
            lines.append(f"Also recorded: {count(cells, 'cell')} under {settings}.")
    broken = sum(bool(result.failures) for result in results.all)
    if broken:
        lines.append(f"{count(broken, 'cell')} with failed batches: pagnn-bench report lists them.")
    if results.damaged:
        lines.append(f"{count(len(results.damaged), 'file')} could not be read, so trials are left out.")
    return "\n" + "\n".join(lines) + "\n" if lines else ""
