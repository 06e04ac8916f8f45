"""Train one batch of trials: from the configuration of a cell to records. All parts come together here."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import torch

from pagnn_bench.config.errors import RequestError, UnsuitableError
from pagnn_bench.config.identity import Cell, canonical_json
from pagnn_bench.data import check_data
from pagnn_bench.engine.cores import set_threads
from pagnn_bench.engine.device import device_facts
from pagnn_bench.engine.faults import free_memory, is_out_of_memory
from pagnn_bench.engine.outcome import Outcome
from pagnn_bench.engine.plan import Batch, Job
from pagnn_bench.engine.precision import warn_if_emulated
from pagnn_bench.engine.prepare import (
    MaskedCell,
    Preparation,
    graph_of,
    graph_on,
    has_own_splits,
    hide_mask,
    make_network,
    prepare,
)
from pagnn_bench.engine.progress import Watcher
from pagnn_bench.methods import build_method
from pagnn_bench.methods.base import Prepared
from pagnn_bench.missing import Observed, check_missing, drawn_pattern, is_natural, splits_vary
from pagnn_bench.nn.network import StackedNetwork
from pagnn_bench.records.provenance import collect_provenance
from pagnn_bench.training.loop import TrainingResult, train
from pagnn_bench.training.protocol import Protocol

MISSING = {"rows": "whole nodes", "cells": "single entries", "biased": "single entries"}  # by pattern

# Tiny weights under strong weight decay become denormal numbers, which CPUs handle very slowly; 0 is as good.
torch.set_flush_denormal(True)


def check_cell(cell: Cell) -> None:
    """Refuse a wrong request before anything is trained or written, without reading data."""
    method = build_method(cell.method)
    check_data(cell.data)
    protocol = Protocol.from_config(cell.protocol)
    if protocol.precision != "float32" and not method.has_bfloat16:
        raise UnsuitableError(
            f"method={cell.method['name']}: has no form in {protocol.precision}; leave precision=float32.",
            f"has no form in {protocol.precision}",
        )
    check_missing(cell.missing, cell.rate)
    if not (is_natural(cell.missing) and cell.rate == 0):  # otherwise it depends on the graph: check_graph
        _check_pattern(cell, drawn_pattern(cell.missing))


def check_graph(cell: Cell, masks: Collection[int]) -> None:
    """Refuse a request that does not fit the graph, which this loads."""
    graph, method = graph_of(cell), build_method(cell.method)
    graph_on(cell, min(masks))  # refuses a split that cannot be drawn
    method.check(graph.num_features, graph.num_classes)
    undrawn = splits_vary(cell.missing) and cell.rate == 0
    if graph.known is not None:
        _check_pattern(cell, "cells" if Observed.of(graph.known).rows is None else "rows")
        if method.oracle:
            raise UnsuitableError(
                f"method={cell.method['name']} needs all attributes, and of data={cell.data['name']} "
                f"{100 * graph.natural_share:.3g} % are missing by nature.",
                "needs all attributes",
            )
    elif undrawn and is_natural(cell.missing):
        raise RequestError(
            f"missing=natural rate=0: data={cell.data['name']} has no missing attributes (NaN, or an observed mask); "
            "hide some with rate=0.3 or another missing type."
        )
    if undrawn and len(masks) > 1 and not has_own_splits(cell, graph):
        instead = "masks=1, data.split=random, or a rate above 0"
        if not is_natural(cell.missing):
            instead = "masks=1 or data.split=random"
        raise RequestError(
            f"masks={len(masks)}: missing={cell.missing['name']} with rate=0 draws nothing and the split is fixed, so "
            f"all masks would be the same; give {instead}."
        )


def _check_pattern(cell: Cell, pattern: str) -> None:
    """Refuse a method that is not defined for this missing pattern."""
    method = build_method(cell.method)
    if pattern not in method.patterns:
        why = method.patterns_reason or f"it takes missing.pattern={' or '.join(method.patterns)} only"
        sentence = f"method={cell.method['name']} is not defined for missing={cell.missing['name']}: {why}."
        raise UnsuitableError(sentence, f"not defined where {MISSING[pattern]} are missing")


_Member: TypeAlias = tuple[Cell, int]  # a trial of the mask at hand: cell and seed


@dataclass(frozen=True)
class _MaskWork:
    """What all batches of one mask share, cached from one batch to the next."""

    key: tuple[str, int, int | None]
    masked: MaskedCell
    preparation: Preparation


@dataclass(frozen=True)
class Trained:
    """A trial with its network.

    Attributes:
        seed, record: which trial, and its record.
        network: a stack of this one member, with the weights that were tested; its part ``test`` has all nodes.
        masked, prepared: what all trials of the mask share.
    """

    seed: int
    record: dict[str, Any]
    network: StackedNetwork
    masked: MaskedCell
    prepared: Prepared


class _Stacks(NamedTuple):
    """The results of a job: one per stack, what the last one trained on, and a note for the user.

    ``prepare_seconds`` has an entry for every preparation; stacks may share one.
    """

    results: list[TrainingResult]
    work: _MaskWork
    prepare_seconds: dict[tuple[str, int, int | None], float]
    note: str


def stack_key(cell: Cell) -> str | None:
    """Cells with the same key can train as one stack on a mask; None if a cell must train alone.

    They differ only in learning rate, weight decay and dropout, which can be different for each member of a stack.
    """
    method = build_method(cell.method)
    if method.per_seed or not _has_stackable_dropout(cell):
        return None
    identity = cell.identity
    dropped = cell.method["dropout"] > 0  # without dropout a network draws nothing at all
    may_differ = {"method": ("dropout",), "protocol": ("lr", "weight_decay")}
    shared = {
        group: {key: value for key, value in identity[group].items() if key not in keys}
        for group, keys in may_differ.items()
    }
    return canonical_json({**identity, **shared, "dropped": dropped})


def _has_stackable_dropout(cell: Cell) -> bool:
    """Whether dropout streams can implement the cell's key ``dropout``."""
    return build_method(cell.method).stackable_dropout and "dropout" in cell.method


class Executor:
    """Trains batches on one device; consecutive batches on the same mask share their preparation.

    Args:
        device: where to train.
        threads: CPU threads, None for one per usable core.
        keep_curve: keep the training loss of every epoch.
        cache: folder for learned imputations, None to cache none.
        relearn: learn cached imputations again.
        keep: is called with every trial that succeeded and its network.
    """

    def __init__(
        self,
        device: torch.device,
        threads: int | None = None,
        keep_curve: bool = False,
        cache: Path | None = None,
        relearn: bool = False,
        keep: Callable[[Trained], None] | None = None,
    ) -> None:
        self.device, self.keep_curve, self.cache, self.relearn = device, keep_curve, cache, relearn
        self.keep = keep
        self.threads = set_threads(threads)
        self.facts = {**device_facts(device), "threads": self.threads}
        self._work: _MaskWork | None = None
        # (data, method) → largest stack that fits, once a larger one did not.
        self._fitting: dict[tuple[str, str], int] = {}

    def run(self, cell: Cell, mask: int, seeds: Sequence[int], watch: Watcher | None = None) -> Outcome:
        """Train the trials (cell, mask, seed) of all given seeds, as one stack if they share a preparation."""
        return self.run_together((Batch(cell, mask, list(seeds), generation=0),), watch)[0]

    def run_together(self, job: Job, watch: Watcher | None = None) -> list[Outcome]:
        """Train batches on one mask whose cells have the same :func:`stack_key`, as one stack if possible.

        Args:
            job: one batch, or several that share their key.
            watch: is notified of progress.

        Returns:
            One outcome per batch.
        """
        start, watch = time.perf_counter(), watch or Watcher()
        members = [(batch.cell, seed) for batch in job for seed in batch.seeds]
        per_seed = build_method(job[0].cell.method).per_seed
        size = 1 if per_seed else len(members)
        stacks = self._run_stacks(members, size, job[0].mask, watch)
        results, work = stacks.results, stacks.work
        records = iter([record for result in results for record in result.records])
        by_batch = [[{"seed": seed, **next(records)} for seed in batch.seeds] for batch in job]
        facts = {
            "stack": max(len(result.records) for result in results),
            **work.preparation.facts,
            "prepare_seconds": sum(stacks.prepare_seconds.values()),
            "train_seconds": sum(result.train_seconds for result in results),
            "eval_seconds": sum(result.eval_seconds for result in results),
            "total_seconds": time.perf_counter() - start,
            "seed_epochs": sum(result.seed_epochs for result in results),
        }
        provenance = collect_provenance(**self.facts, data_checksum=work.masked.loaded.checksum)
        return [
            Outcome(batch, provenance, own, _share_of(facts, own), note=stacks.note)
            for batch, own in zip(job, by_batch)
        ]

    def _run_stacks(self, members: Sequence[_Member], size: int, mask: int, watch: Watcher) -> _Stacks:
        """Train in stacks of ``size``, or half that, and so on, if they do not fit into memory.

        It is an error only if a stack of one does not fit. The size that fits is remembered for the method on this
        graph. A trial in a smaller stack is the same up to rounding.
        """
        cell = members[0][0]
        place = (cell.data["name"], cell.method["name"])
        size = min(size, self._fitting.get(place, size))
        left, results, seconds, note = list(members), [], {}, ""
        while left:
            stack = left[:size]
            work = self._prepare(*stack[0], mask, watch)
            seconds[work.key] = work.preparation.seconds
            result = self._result(stack, work, mask, watch)
            if result is not None:
                results.append(result)
                left = left[size:]
                continue
            free_memory(self.device)
            size = self._fitting[place] = len(stack) // 2
            note = (
                f"{cell.method['name']} on {cell.data['name']}: {len(stack)} trials at once do not fit into memory; "
                f"continuing with {size}."
            )
        return _Stacks(results, work, seconds, note)

    def _result(
        self, stack: Sequence[_Member], work: _MaskWork, mask: int, watch: Watcher
    ) -> TrainingResult | None:
        """None if a stack of several does not fit; its memory is free once this has returned."""
        try:
            return self._train(stack, work, mask, watch)
        except Exception as error:
            if len(stack) == 1 or not is_out_of_memory(error):
                raise
            return None

    def _train(
        self, members: Sequence[_Member], work: _MaskWork, mask: int, watch: Watcher
    ) -> TrainingResult:
        protocols = [Protocol.from_config(cell.protocol) for cell, _ in members]
        cell = members[0][0]
        dropout = [cell.trial_seed("dropout", mask, seed) for cell, seed in members]
        # The network may have been prepared for another cell with the same key.
        rates = [cell.method["dropout"] for cell, _ in members] if _has_stackable_dropout(cell) else None
        result = train(
            self._network(members, work, mask),
            work.masked.graph,
            protocols,
            dropout,
            self.device,
            self.keep_curve,
            watch.epoch,
            rates,
            keep_weights=self.keep is not None,
        )
        for member, record, weights in zip(members, result.records, result.weights):
            if self.keep is not None and weights is not None:
                network = self._network([member], work, mask)
                network.replace(weights)
                self.keep(Trained(member[1], record, network, work.masked, work.preparation.prepared))
        return result

    def _network(self, members: Sequence[_Member], work: _MaskWork, mask: int) -> StackedNetwork:
        """The stack of these trials before training."""
        weights = [cell.trial_seed("weights", mask, seed) for cell, seed in members]
        return make_network(work.preparation.prepared, weights, Protocol.from_config(members[0][0].protocol))

    def _prepare(self, cell: Cell, seed: int, mask: int, watch: Watcher) -> _MaskWork:
        per_seed = build_method(cell.method).per_seed
        key = (stack_key(cell) or cell.hash, mask, seed if per_seed else None)
        if self._work is None or self._work.key != key:
            self._work = None  # frees the memory of the last mask
            if Protocol.from_config(cell.protocol).precision == "bfloat16":
                warn_if_emulated(self.device)
            masked = hide_mask(cell, mask, self.device, seed, watch.report, self.cache, self.relearn)
            if self.keep is not None:
                masked = masked.everywhere()
            self._work = _MaskWork(key, masked, prepare(masked))
        return self._work


def _share_of(facts: dict[str, Any], records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The facts of one batch's part of a stack: times are divided by the epochs that its members trained."""
    epochs = sum(record["epochs"] for record in records)
    if epochs == facts["seed_epochs"]:
        return facts
    share = epochs / facts["seed_epochs"]
    times = {key: value * share for key, value in facts.items() if key.endswith("_seconds")}
    return {**facts, **times, "seed_epochs": epochs}
