"""Which methods suit a graph, whether it has missing attributes of its own, and whether its masks differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from pagnn_bench.config.errors import RequestError, UnsuitableError
from pagnn_bench.config.identity import Cell
from pagnn_bench.engine.backends import check_backend
from pagnn_bench.engine.execute import check_cell, check_graph
from pagnn_bench.engine.plan import Request, Settings
from pagnn_bench.engine.prepare import graph_of, has_own_splits
from pagnn_bench.methods import build_method
from pagnn_bench.missing import splits_vary

Config: TypeAlias = "dict[str, Any]"
SEES = "sees what is hidden"


def has_gaps(cell: Cell) -> bool:
    """Whether attributes of the cell's graph are missing by nature."""
    return graph_of(cell).known is not None


def masks_differ(cell: Cell) -> bool:
    """Whether two masks of the cell differ: something is drawn, or each has its own split."""
    return not splits_vary(cell.missing) or cell.rate > 0 or has_own_splits(cell, graph_of(cell))


def suitable(configs: Sequence[Config]) -> tuple[list[Config], dict[str, str]]:
    """Leave out the methods that do not suit this data, or are only used on request.

    Args:
        configs: resolved configurations that differ only in their method.

    Returns:
        (the configurations of the others, name → reason for those left out).

    Raises:
        RequestError: the request is wrong whatever the method.
    """
    fit: list[Config] = []
    unfit: dict[str, str] = {}
    for config in configs:
        request = Request.from_config(config)
        name, method = request.cell.method["name"], build_method(request.cell.method)
        if reason := SEES if method.oracle else method.on_request:
            unfit[name] = reason
            continue
        try:
            _check(request)
        except UnsuitableError as error:
            unfit[name] = error.reason
        else:
            fit.append(config)
    return fit, unfit


def check_suitable(configs: Sequence[Config]) -> None:
    """Refuse named methods that cannot be used on this data, or on any, since they see what is hidden."""
    for config in configs:
        request = Request.from_config(config)
        name = request.cell.method["name"]
        if build_method(request.cell.method).oracle:
            raise RequestError(f"method={name}: {SEES}, as no real method can; leave it out, or use `run`.")
        _check(request)


def check_settings(configs: Sequence[Config]) -> None:
    """Refuse wrong settings on how to run, before anything about what to run."""
    settings = Settings.shared_by(configs)
    check_backend(settings.backend)


def _check(request: Request) -> None:
    check_cell(request.cell)
    check_graph(request.cell, {mask for mask, _ in request.trials})
