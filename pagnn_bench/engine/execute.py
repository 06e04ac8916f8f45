"""Train one batch of trials: from the configuration of a cell to records. Here all parts come together."""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pagnn_bench.config.errors import RequestError, refuse
from pagnn_bench.config.identity import Cell, canonical_json
from pagnn_bench.config.schema import Valid
from pagnn_bench.data import check_data
from pagnn_bench.engine.cores import set_threads
from pagnn_bench.engine.outcome import Outcome
from pagnn_bench.engine.plan import Batch, Job
from pagnn_bench.engine.prepare import (
    MaskedCell,
    Preparation,
    graph_of,
    has_own_splits,
    hide_mask,
    prepare,
)
from pagnn_bench.engine.progress import Watcher
from pagnn_bench.methods import build_method
from pagnn_bench.missing import Observed, check_missing, drawn_pattern, is_natural
from pagnn_bench.records.provenance import collect_provenance
from pagnn_bench.training.loop import Protocol, TrainingResult, train

# Tiny weights under strong weight decay become denormal numbers, which CPUs handle very slowly; 0 is as good.
torch.set_flush_denormal(True)


def _is_device(name: Any) -> bool:
    try:
        return name == "auto" or torch.device(name).type in ("cpu", "cuda")
    except (RuntimeError, TypeError):
        return False


DEVICE = Valid(_is_device, "choose auto, cpu, cuda, or cuda:0, cuda:1 and so on")


def check_device(name: str) -> None:
    """Refuse what is no device; whether this machine has it is another question."""
    DEVICE.check("device", name)


def pick_device(name: str) -> torch.device:
    """The device that ``device=`` names; ``auto`` is a GPU where there is one."""
    check_device(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        refuse("device", name, f"torch sees {torch.cuda.device_count()} CUDA devices here")
    return device


def check_cell(cell: Cell) -> None:
    """Refuse a wrong request before anything is trained or written; reads no data."""
    method = build_method(cell.method)
    check_data(cell.data)
    protocol = Protocol.from_config(cell.protocol)
    if protocol.precision != "float32" and not method.has_bfloat16:
        raise RequestError(
            f"method={cell.method['name']}: has no form in {protocol.precision}; leave precision=float32."
        )
    check_missing(cell.missing, cell.rate)
    if not (is_natural(cell.missing) and cell.rate == 0):  # then only the graph can tell: check_graph
        _check_pattern(cell, drawn_pattern(cell.missing))


def check_graph(cell: Cell, masks: Collection[int]) -> None:
    """Refuse what only the graph itself can tell to be wrong; loads it."""
    graph, method = graph_of(cell), build_method(cell.method)
    undrawn = is_natural(cell.missing) and cell.rate == 0
    if graph.known is not None:
        _check_pattern(cell, "cells" if Observed.of(graph.known).rows is None else "rows")
        if method.oracle:
            raise RequestError(
                f"method={cell.method['name']} needs all attributes, and of data={cell.data['name']} "
                f"{100 * graph.natural_share:.3g} % are missing by nature."
            )
    elif undrawn:
        raise RequestError(
            f"missing=natural rate=0: data={cell.data['name']} has no missing attributes (NaN, or an observed mask); "
            "hide some with rate=0.3 or another missing type."
        )
    if undrawn and len(masks) > 1 and not has_own_splits(cell, graph):
        raise RequestError(
            f"masks={len(masks)}: missing=natural with rate=0 draws nothing and the split is fixed, so all masks would "
            "be the same; give masks=1, data.split=random, or a rate above 0."
        )


def _check_pattern(cell: Cell, pattern: str) -> None:
    """Refuse a method that is not defined for these gaps."""
    method = build_method(cell.method)
    if pattern not in method.patterns:
        why = method.patterns_reason or f"it takes missing.pattern={' or '.join(method.patterns)} only"
        raise RequestError(
            f"method={cell.method['name']} is not defined for missing={cell.missing['name']}: {why}."
        )


@dataclass(frozen=True)
class _MaskWork:
    """What all batches of one mask share, kept from one batch to the next."""

    key: tuple[str, int, int | None]
    masked: MaskedCell
    preparation: Preparation


def stack_key(cell: Cell) -> str | None:
    """Cells with the same key can train as one stack on a mask; None if a cell must be by itself.

    They differ in learning rate, weight decay and dropout only, which every member of a stack may have of its own.
    """
    method = build_method(cell.method)
    if method.per_seed or not _has_stackable_dropout(cell):
        return None
    identity = cell.identity
    dropped = cell.method["dropout"] > 0  # without dropout a network draws nothing at all
    apart = {"method": ("dropout",), "protocol": ("lr", "weight_decay")}
    shared = {
        group: {key: value for key, value in identity[group].items() if key not in own}
        for group, own in apart.items()
    }
    return canonical_json({**identity, **shared, "dropped": dropped})


def _warn_if_emulated(device: torch.device) -> None:
    """Say so where bfloat16 saves no time; the numbers are the same."""
    if device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        native = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    if not native:
        text = (
            f"precision=bfloat16: {device} has no arithmetic for it, so that float32 is likely faster here."
        )
        warnings.warn(text, stacklevel=2)


def _has_stackable_dropout(cell: Cell) -> bool:
    """Whether the streams of a stack can stand for the cell's key ``dropout``."""
    return build_method(cell.method).stackable_dropout and "dropout" in cell.method


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

    def run(self, cell: Cell, mask: int, seeds: Sequence[int], watch: Watcher | None = None) -> Outcome:
        """Train the trials (cell, mask, seed) of all given seeds, as one stack where they share a preparation."""
        return self.run_together((Batch(cell, mask, list(seeds), generation=0),), watch)[0]

    def run_together(self, job: Job, watch: Watcher | None = None) -> list[Outcome]:
        """Train batches on one mask whose cells have the same :func:`stack_key`, as one stack where they can.

        Args:
            job: one batch, or several that share their key.
            watch: who looks on.

        Returns:
            One outcome per batch.
        """
        start, watch = time.perf_counter(), watch or Watcher()
        members = [(batch.cell, seed) for batch in job for seed in batch.seeds]
        per_seed = build_method(job[0].cell.method).per_seed
        stacks = [[member] for member in members] if per_seed else [members]
        results = [self._run_stack(stack, job[0].mask, watch) for stack in stacks]
        records = iter([record for result, _ in results for record in result.records])
        by_batch = [[{"seed": seed, **next(records)} for seed in batch.seeds] for batch in job]
        facts = {
            "stack": len(stacks[0]),
            **results[-1][1].preparation.facts,
            "prepare_seconds": sum(work.preparation.seconds for _, work in results),
            "train_seconds": sum(result.train_seconds for result, _ in results),
            "eval_seconds": sum(result.eval_seconds for result, _ in results),
            "total_seconds": time.perf_counter() - start,
            "seed_epochs": sum(result.seed_epochs for result, _ in results),
        }
        provenance = collect_provenance(
            device=str(self.device),
            threads=self.threads,
            data_checksum=results[-1][1].masked.loaded.checksum,
        )
        return [Outcome(batch, provenance, own, _share_of(facts, own)) for batch, own in zip(job, by_batch)]

    def _run_stack(
        self, members: Sequence[tuple[Cell, int]], mask: int, watch: Watcher
    ) -> tuple[TrainingResult, _MaskWork]:
        protocols = [Protocol.from_config(cell.protocol) for cell, _ in members]
        cell, seed = members[0]
        work = self._prepare(cell, mask, seed, watch)
        weights, dropout = (
            [cell.trial_seed(purpose, mask, seed) for cell, seed in members]
            for purpose in ("weights", "dropout")
        )
        network = work.preparation.prepared.network(weights, protocols[0].init_gain)
        if protocols[0].precision == "bfloat16":
            _warn_if_emulated(self.device)
            network.to_bfloat16()
        # The network may have been prepared for another cell of the same key.
        rates = [cell.method["dropout"] for cell, _ in members] if _has_stackable_dropout(cell) else None
        result = train(
            network, work.masked.graph, protocols, dropout, self.device, self.keep_curve, watch.epoch, rates
        )
        return result, work

    def _prepare(self, cell: Cell, mask: int, seed: int, watch: Watcher) -> _MaskWork:
        per_seed = build_method(cell.method).per_seed
        key = (stack_key(cell) or cell.hash, mask, seed if per_seed else None)
        if self._work is None or self._work.key != key:
            masked = hide_mask(cell, mask, self.device, seed, watch.report, self.cache, self.anew)
            self._work = _MaskWork(key, masked, prepare(masked))
        return self._work


def _share_of(facts: dict[str, Any], records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The facts of one batch's part of a stack: times are shared out by the epochs that its members trained."""
    epochs = sum(record["epochs"] for record in records)
    if epochs == facts["seed_epochs"]:
        return facts
    share = epochs / facts["seed_epochs"]
    times = {key: value * share for key, value in facts.items() if key.endswith("_seconds")}
    return {**facts, **times, "seed_epochs": epochs}
