"""Train one batch of trials: from the configuration of a cell to records. Here all parts come together."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import Cell, canonical_json
from pagnn_bench.data import Graph, check_data, load_graph
from pagnn_bench.engine.cores import set_threads
from pagnn_bench.engine.progress import Watcher
from pagnn_bench.methods import build_method
from pagnn_bench.methods.base import Context, Prepared
from pagnn_bench.methods.imputation import imputation_error
from pagnn_bench.missing import IncompleteGraph, check_missing, draw_observed, hide
from pagnn_bench.training.loop import Protocol, TrainingResult, train

# Tiny weights under strong weight decay become denormal numbers, which CPUs handle very slowly; 0 is as good.
torch.set_flush_denormal(True)


@dataclass(frozen=True)
class BatchResult:
    """Records of a batch (one per seed) and the facts about it that go beside them."""

    records: list[dict[str, Any]]
    facts: dict[str, Any]
    data_checksum: str


def check_device(name: str) -> None:
    """Refuse what is no device; whether this machine has it is another question."""
    try:
        known = name == "auto" or torch.device(name).type in ("cpu", "cuda")
    except (RuntimeError, TypeError):
        known = False
    if not known:
        raise RequestError(f"device={name}: choose auto, cpu, cuda or cuda:0, cuda:1, ...")


def pick_device(name: str) -> torch.device:
    """The device that ``device=`` names; ``auto`` is a GPU where there is one."""
    check_device(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
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
    """Refuse a wrong request before anything is trained or written; reads no data."""
    method = build_method(cell.method)
    check_data(cell.data)
    Protocol.from_config(cell.protocol)
    check_missing(cell.missing, cell.rate)
    if cell.missing["pattern"] not in method.patterns:
        why = method.patterns_reason or f"it takes missing.pattern={' or '.join(method.patterns)} only"
        raise RequestError(
            f"method={cell.method['name']} is not defined for missing={cell.missing['name']}: {why}."
        )


@dataclass
class _MaskWork:
    """What all batches of one mask share, kept from one batch to the next; ``seconds`` is what the method took."""

    key: tuple[str, int, int | None]
    graph: IncompleteGraph
    prepared: Prepared
    facts: dict[str, Any]
    seconds: float


class Executor:
    """Trains batches on one device; batches that follow each other on the same mask share their preparation.

    Args:
        device: where to train.
        threads: CPU threads, None for as many as there are cores to use.
        keep_curve: keep the training loss of every epoch.
        cache: folder for learned imputations, None to keep none.
        anew: learn again what is kept there.
    """

    def __init__(
        self,
        device: torch.device,
        threads: int | None = None,
        keep_curve: bool = False,
        cache: Path | None = None,
        anew: bool = False,
    ) -> None:
        self.device, self.keep_curve, self.cache, self.anew = device, keep_curve, cache, anew
        self.threads = set_threads(threads)
        self._work: _MaskWork | None = None

    def run(self, cell: Cell, mask: int, seeds: Sequence[int], watch: Watcher | None = None) -> BatchResult:
        """Train the trials (cell, mask, seed) of all given seeds, as one stack where they share a preparation."""
        start, watch = time.perf_counter(), watch or Watcher()
        stacks = [[seed] for seed in seeds] if build_method(cell.method).per_seed else [list(seeds)]
        results = [self._run_stack(cell, mask, stack, watch) for stack in stacks]
        records = [record for result, _ in results for record in result.records]
        facts = {
            "stack": len(stacks[0]),
            **results[-1][1].facts,
            "prepare_seconds": sum(work.seconds for _, work in results),
            "train_seconds": sum(result.train_seconds for result, _ in results),
            "eval_seconds": sum(result.eval_seconds for result, _ in results),
            "total_seconds": time.perf_counter() - start,
            "seed_epochs": sum(result.seed_epochs for result, _ in results),
        }
        records = [{"seed": seed, **record} for seed, record in zip(seeds, records)]
        return BatchResult(records, facts, graph_of(cell).checksum)

    def _run_stack(
        self, cell: Cell, mask: int, seeds: Sequence[int], watch: Watcher
    ) -> tuple[TrainingResult, _MaskWork]:
        protocol = Protocol.from_config(cell.protocol)
        work = self._prepare(cell, mask, seeds, protocol, watch)
        weights = [cell.trial_seed("weights", mask, seed) for seed in seeds]
        dropout = [cell.trial_seed("dropout", mask, seed) for seed in seeds]
        network = work.prepared.network(weights, protocol.init_gain)
        trained = train(network, work.graph, protocol, dropout, self.device, self.keep_curve, watch.epoch)
        return trained, work

    def _prepare(
        self, cell: Cell, mask: int, seeds: Sequence[int], protocol: Protocol, watch: Watcher
    ) -> _MaskWork:
        method = build_method(cell.method)
        key = (cell.hash, mask, seeds[0] if method.per_seed else None)
        if self._work is None or self._work.key != key:
            graph = graph_of(cell)
            shape = (graph.num_nodes, graph.num_features)
            observed = draw_observed(cell.missing, cell.rate, shape, cell.mask_seed(mask))
            incomplete = hide(graph, observed, protocol.feature_norm, oracle=method.oracle)
            seed = cell.trial_seed("method", mask, seeds[0]) if method.per_seed else cell.method_seed(mask)
            context = Context(seed, self.device, watch.report, self.cache, self.anew)
            start = time.perf_counter()
            prepared = method.prepare(incomplete.for_method(), context)
            # A cached imputation took its time when it was made, and that time is part of the method's time.
            seconds = time.perf_counter() - start + prepared.facts.get("cached_seconds", 0.0)
            facts = {"missing_share": observed.missing_share, **prepared.facts}
            if prepared.filled is not None and protocol.feature_norm == "none" and not method.oracle:
                facts |= imputation_error(prepared.filled, graph.features, observed)
            self._work = _MaskWork(key, incomplete, prepared, facts, seconds)
        return self._work
