"""The two measurements of ``bench``, from parsed options to a document."""

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
from pagnn_bench.engine.cores import set_threads


def speed(options: argparse.Namespace) -> tuple[Document, int]:
    """All contenders of all places; saved after every place."""
    from pagnn_bench.bench.measure import MeasureSettings, describe_place, measure_place
    from pagnn_bench.engine.execute import pick_device
    from pagnn_bench.methods import build_method

    device, threads = pick_device(options.device), set_threads(options.threads)
    methods = options.methods or list(choices("method"))
    words = (("method", methods), ("data", options.data), ("missing", options.missing))
    cells = _cells([f"{key}={','.join(names)}" for key, names in words] + [f"rate={options.rate}"])
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
        machine_facts(threads, str(device)),
    )
    for data, missing in itertools.product(options.data, options.missing):
        here = [cell for cell in cells if (cell.data["name"], cell.missing["name"]) == (data, missing)]
        pattern = here[0].missing["pattern"]
        defined = [cell for cell in here if pattern in build_method(cell.method).patterns]
        if not defined:
            raise RequestError(
                f"--methods {','.join(methods)}: none of them is defined for missing={missing}."
            )
        _say(f"{data}, {missing}, rate {options.rate:g}: {len(defined)} methods")
        document["places"].append(describe_place(defined[0]))
        rows = measure_place(defined, settings, lambda text: _say(f"  {text}"))
        document["rows"] += [row.record() for row in rows]
        _keep(document, options.output)
    return document, 0


def growth(options: argparse.Namespace) -> tuple[Document, int]:
    """All points of the chosen axes; saved after every round."""
    from pagnn_bench.bench.child import ChildError
    from pagnn_bench.bench.growth import AXES, measure_growth
    from pagnn_bench.engine.execute import check_cell, pick_device

    device, threads = pick_device(options.device), set_threads(options.threads)
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
        machine_facts(threads, str(device)),
    )
    rounds = measure_growth(cell, names, options.repeats, options.epochs, threads, str(device), _say)
    try:
        for points in rounds:
            document["points"] = points
            _keep(document, options.output)
    except ChildError as error:
        print(f"pagnn-bench: a measurement of --growth broke off: {error}", file=sys.stderr)
        return document, 1
    return document, 0


def _cells(words: Sequence[str]) -> list[Cell]:
    return [Cell.from_config(config) for config in compose_combinations(words, multirun=True)]


def _keep(document: dict[str, Any], output: str | None) -> None:
    if output is not None:
        save_document(document, output)


def _say(text: str) -> None:
    """Print how far it is; the table alone goes to stdout."""
    print(text, file=sys.stderr, flush=True)
