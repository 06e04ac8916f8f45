"""The modes of ``bench``, from parsed options to a document."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from typing import Any

from pagnn_bench.bench.document import Document, new_document, save_document
from pagnn_bench.bench.machine import machine_facts
from pagnn_bench.config.arguments import results_folder
from pagnn_bench.config.catalogue import choices
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.sweep import compose_combinations
from pagnn_bench.config.text import count
from pagnn_bench.engine.cores import set_threads, usable_cores

GRAPHS = ("cora", "citeseer", "amaphoto")
# The sweep of --parallel: enough batches for many cores, a minute or so on two.
RATES, MASKS = ("0.3", "0.7"), 2


def speed(options: argparse.Namespace) -> tuple[Document, int]:
    """All contenders of all places; saved after every place."""
    from pagnn_bench.bench.measure import MeasureSettings, describe_place, measure_place
    from pagnn_bench.engine.device import pick_device
    from pagnn_bench.methods import build_method

    device, threads = pick_device(options.device), set_threads(options.threads or 1)
    options.data = options.data or list(GRAPHS)
    methods = options.methods or list(choices("method"))
    words = (("method", methods), ("data", options.data), ("missing", options.missing))
    axes = [f"{key}={','.join(names)}" for key, names in words]
    cells = [
        cell
        for precision in options.precision
        for cell in _cells([*axes, f"rate={options.rate}", f"precision={precision}"])
        if precision == "float32" or build_method(cell.method).has_bfloat16
    ]
    results = None if options.results is None else results_folder(options.results)
    settings = MeasureSettings(
        seeds=options.seeds,
        epochs=options.epochs,
        repeats=options.repeats,
        threads=threads,
        device=device,
        memory=options.memory,
        forms=options.reference,
        cache=results / "imputed" if results else None,
    )
    keys = ("data", "missing", "rate", "seeds", "epochs", "repeats")
    document = new_document(
        "speed",
        {**{key: getattr(options, key) for key in keys}, "methods": methods},
        machine_facts(threads, device),
    )
    for data, missing in itertools.product(options.data, options.missing):
        here = [cell for cell in cells if (cell.data["name"], cell.missing["name"]) == (data, missing)]
        pattern = here[0].missing["pattern"]
        defined = [cell for cell in here if pattern in build_method(cell.method).patterns]
        defined.sort(
            key=lambda cell: methods.index(cell.method["name"])
        )  # keeps precisions of a method together
        if not defined:
            raise RequestError(
                f"--methods {','.join(methods)}: none of them is defined for missing={missing}."
            )
        _say(f"{data}, {missing}, rate {options.rate:g}: {count(len(defined), 'method')}")
        document["places"].append(describe_place(defined[0]))
        rows = measure_place(defined, settings, lambda text: _say(f"  {text}"))
        document["rows"] += [row.record() for row in rows]
        _save(document, options.output)
    return document, 0


def growth(options: argparse.Namespace) -> tuple[Document, int]:
    """All points of the chosen axes; saved after every round."""
    from pagnn_bench.bench.child import ChildError
    from pagnn_bench.bench.growth import AXES, measure_growth
    from pagnn_bench.engine.device import pick_device
    from pagnn_bench.engine.execute import check_cell

    device, threads = pick_device(options.device), set_threads(options.threads or 1)
    [method, *others] = options.methods or ["pagnn_n"]
    [missing, *types] = options.missing
    if others or types:
        raise RequestError("--growth: measures one method and one missing type at a time.")
    [cell] = _cells([f"method={method}", "data=synthetic", f"missing={missing}", f"rate={options.rate}"])
    check_cell(cell)
    names = options.axes or list(AXES)
    document = new_document(
        "growth",
        {
            "method": method,
            "missing": missing,
            "rate": options.rate,
            "repeats": options.repeats,
            "axes": names,
        },
        machine_facts(threads, device),
    )
    rounds = measure_growth(cell, names, options.repeats, options.epochs, threads, str(device), _say)
    try:
        for points in rounds:
            document["points"] = points
            _save(document, options.output)
    except ChildError as error:
        print(f"pagnn-bench: a measurement of --growth failed: {error}", file=sys.stderr)
        return document, 1
    return document, 0


def parallel(options: argparse.Namespace) -> tuple[Document, int]:
    """A sweep, run in every way; saved after every round."""
    from pagnn_bench.bench.child import ChildError
    from pagnn_bench.bench.parallel import DATA, METHODS, measure_parallel
    from pagnn_bench.engine.device import pick_device

    cores, device = options.threads or usable_cores(), pick_device(options.device)
    [precision, *others] = options.precision
    if others:
        raise RequestError("--parallel: measures one precision at a time.")
    settings = {
        "methods": options.methods or list(METHODS),
        "data": options.data or list(DATA),
        "precision": precision,
        "cores": cores,
        "repeats": options.repeats,
    }
    words = [f"method={','.join(settings['methods'])}", f"data={','.join(settings['data'])}"]
    words += [f"missing={','.join(options.missing)}", f"rate={','.join(RATES)}", f"masks={MASKS}"]
    words += [f"precision={precision}", f"device={options.device}"]
    _cells(words)  # refuses a wrong request before anything is measured
    document = new_document("parallel", settings, machine_facts(1, device))
    try:
        for rows in measure_parallel(words, cores, options.repeats, _say):
            document["rows"] = rows
            _save(document, options.output)
    except ChildError as error:
        if not document["rows"]:
            raise RequestError(f"--parallel: a sweep failed: {error}") from error
        print(f"pagnn-bench: a sweep of --parallel failed: {error}", file=sys.stderr)
        return document, 1
    return document, 0


def _cells(words: Sequence[str]) -> list[Cell]:
    return [Cell.from_config(config) for config in compose_combinations(words, multirun=True)]


def _save(document: dict[str, Any], output: str | None) -> None:
    if output is not None:
        save_document(document, output)


def _say(text: str) -> None:
    """Print progress; only the table goes to stdout."""
    print(text, file=sys.stderr, flush=True)
