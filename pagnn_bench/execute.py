"""Train one batch of trials: from the cell's configuration to records. The only module that brings all parts together."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from pagnn_bench.cell import Cell, canonical_json
from pagnn_bench.data import Graph, load_graph
from pagnn_bench.errors import RequestError
from pagnn_bench.methods import Method, build_method
from pagnn_bench.methods.base import Prepared
from pagnn_bench.missing import IncompleteGraph, check_missing, draw_observed, hide
from pagnn_bench.train import Protocol, train

# Tiny weights under strong weight decay become denormal numbers, which CPUs handle very slowly; 0 is as good.
torch.set_flush_denormal(True)


@dataclass(frozen=True)
class BatchResult:
    """Records of a batch (one per seed) and the facts about it that go beside them."""

    records: list[dict[str, Any]]
    facts: dict[str, Any]
    data_checksum: str


def pick_device(name: str) -> torch.device:
    """``auto`` is a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise RequestError(f"device={name}: choose auto, cpu, cuda or cuda:0, cuda:1, ...") from error
    if device.type not in ("cpu", "cuda"):
        raise RequestError(f"device={name}: choose auto, cpu, cuda or cuda:0, cuda:1, ...")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise RequestError(f"device={name}: torch sees {torch.cuda.device_count()} CUDA devices here.")
    return device


@lru_cache(maxsize=4)
def _load(config: str) -> Graph:
    return load_graph(json.loads(config))


def graph_of(cell: Cell) -> Graph:
    """The cell's graph, loaded once per process."""
    return _load(canonical_json(cell.data))


def check_cell(cell: Cell) -> None:
    """Refuse a wrong request before anything is trained or written: method, protocol, missing type, data."""
    method = build_method(cell.method)
    Protocol.from_config(cell.protocol)
    check_missing(cell.missing, cell.rate)
    if cell.missing["pattern"] not in method.patterns:
        raise RequestError(
            f"method={cell.method['name']} is not defined for missing={cell.missing['name']}; "
            f"it takes the patterns {', '.join(method.patterns)}."
        )
    graph_of(cell)


@dataclass
class _MaskWork:
    """What all batches of one mask share; kept from one batch to the next."""

    key: tuple[str, int, torch.device]
    graph: IncompleteGraph
    prepared: Prepared
    seconds: float


class Executor:
    """Trains batches on one device; batches that follow each other on the same mask share their preparation."""

    def __init__(self, device: torch.device, threads: int | None = None, keep_curve: bool = False) -> None:
        if threads is not None:
            torch.set_num_threads(threads)
        self.device, self.keep_curve, self.threads = device, keep_curve, torch.get_num_threads()
        self._work: _MaskWork | None = None

    def run(
        self,
        cell: Cell,
        mask: int,
        seeds: Sequence[int],
        on_epoch: Callable[[int, Sequence[Mapping[str, Any]]], None] | None = None,
    ) -> BatchResult:
        """Train the trials (cell, mask, seed) of all given seeds as one stack."""
        protocol = Protocol.from_config(cell.protocol)
        work = self._prepare(cell, mask, protocol)
        start = time.perf_counter()
        network = work.prepared.network(
            [cell.trial_seed("weights", mask, seed) for seed in seeds], protocol.init_gain
        )
        result = train(
            network,
            work.graph,
            protocol,
            [cell.trial_seed("dropout", mask, seed) for seed in seeds],
            self.device,
            self.keep_curve,
            on_epoch,
        )
        facts = {
            "stack": len(seeds),
            "missing_share": work.graph.observed.missing_share,
            **work.prepared.facts,
            "prepare_seconds": work.seconds,
            "train_seconds": result.train_seconds,
            "eval_seconds": result.eval_seconds,
            "total_seconds": work.seconds + time.perf_counter() - start,
            "seed_epochs": result.seed_epochs,
        }
        records = [{"seed": seed, **record} for seed, record in zip(seeds, result.records)]
        return BatchResult(records, facts, graph_of(cell).checksum)

    def _prepare(self, cell: Cell, mask: int, protocol: Protocol) -> _MaskWork:
        key = (cell.hash, mask, self.device)
        if self._work is None or self._work.key != key:
            start = time.perf_counter()
            graph = graph_of(cell)
            shape = (graph.num_nodes, graph.num_features)
            observed = draw_observed(cell.missing, cell.rate, shape, cell.mask_seed(mask))
            method: Method = build_method(cell.method)
            incomplete = hide(graph, observed, protocol.feature_norm, oracle=method.oracle)
            prepared = method.prepare(incomplete, cell.method_seed(mask), self.device)
            self._work = _MaskWork(key, incomplete, prepared, time.perf_counter() - start)
        return self._work
