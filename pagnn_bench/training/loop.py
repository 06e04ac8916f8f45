"""The training loop of every method: S seeds at once, each with its own stopping and best epoch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pagnn_bench.missing import IncompleteGraph
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.network import PARTS, StackedNetwork
from pagnn_bench.training.clock import Clock
from pagnn_bench.training.optimiser import StackedAdam
from pagnn_bench.training.protocol import Protocol, common
from pagnn_bench.training.scores import confusion, scores_of
from pagnn_bench.training.stack import Stack
from pagnn_bench.training.stopping import stopping_rule
from pagnn_bench.training.window import Scores, epochs_at_once, train_window

# The test nodes are most of a graph: seeds that stop together are tested a few at a time, to bound the memory.
TESTED_AT_ONCE = 4


@dataclass
class TrainingResult:
    """Records of S trials and where the time went.

    Attributes:
        records: one dict per seed, in the order of the stack: status, test_acc, test_macro_f1, test_balanced_acc,
            val_acc, val_loss, best_epoch, epochs, peak_epoch and peak_val_acc, the highest validation accuracy of all
            epochs, which a rule need not keep (and reason of a failed one, curve on request).
        weights: the weights that each seed was tested with, by name, [1, ...]; None for a failed one; empty unless
            requested.
        train_seconds: forward, backward and step of all epochs, evaluation excluded.
        eval_seconds: validation of all epochs and the test evaluations.
        seed_epochs: Σ epochs over the seeds: train_seconds / seed_epochs is the time of one epoch of one seed.
    """

    records: list[dict[str, Any]]
    weights: list[dict[str, Tensor] | None] = field(default_factory=list)
    train_seconds: float = 0.0
    eval_seconds: float = 0.0
    seed_epochs: int = 0


def train(
    network: StackedNetwork,
    graph: IncompleteGraph,
    protocol: Protocol | Sequence[Protocol],
    dropout_seeds: Sequence[int],
    device: torch.device,
    keep_curve: bool = False,
    on_epoch: Callable[[int, Sequence[dict[str, Any]]], None] | None = None,
    dropout_rates: Sequence[float] | None = None,
    look_every: int | None = None,
    keep_weights: bool = False,
) -> TrainingResult:
    """Train all members of a stack to their own early stop.

    The members share only the matrix products: losses are summed over the stack, so each gradient is that of the seed
    alone; a member that stops, or whose loss is no longer finite, leaves the stack.

    Args:
        network: S stacked networks.
        graph: labels and split.
        protocol: optimiser and stopping rule; one per member in a stack of settings, which may differ only in learning
            rate and weight decay.
        dropout_seeds: one per member.
        device: where the network lives.
        keep_curve: keep the training loss of every epoch in the record.
        on_epoch: called after every epoch with the epoch and the records that it finished.
        dropout_rates: one per member in a stack of settings that differ in it.
        look_every: epochs from one look at the scores to the next, which changes no record; None: as suits the device.
        keep_weights: keep the weights that were tested.
    """
    labels, scored = _labels(graph, device)
    members = len(dropout_seeds)
    protocols = [protocol] * members if isinstance(protocol, Protocol) else list(protocol)
    protocol = common(protocols)
    streams = DropoutStreams(dropout_seeds, device, dropout_rates, protocol.dropout_rng)
    stack = _new_stack(network, protocols, streams)
    result = TrainingResult(records=[{} for _ in range(members)])
    if keep_weights:
        result.weights = [None] * members
    curves: list[list[float]] = [[] for _ in range(members)]

    # A network without anything to train is evaluated once.
    last_epoch = protocol.max_epochs if any(p.numel() for p in network.parameters()) else 1
    clock, look_every = Clock(device), look_every or epochs_at_once(stack, device)

    for first in range(1, last_epoch + 1, look_every):
        epochs = range(first, min(first + look_every, last_epoch + 1))
        window = train_window(stack, labels, len(epochs), clock)
        result.train_seconds += window.train_seconds
        result.eval_seconds += window.eval_seconds
        for epoch, scores, weights in zip(epochs, window.scores, window.weights):
            start, trained = time.perf_counter(), stack.alive
            scores = scores.of(stack.place)
            done = _keep_best(stack, scores, weights, epoch) | scores.diverged | (epoch == last_epoch)
            finished: list[dict[str, Any]] = []
            if done.any():
                finished = _finish(stack, done, scores.diverged, epoch, labels["test"], scored)
                for member, record in zip(trained[done], finished):
                    result.records[member] = record
                if keep_weights:
                    for k in np.flatnonzero(done & ~scores.diverged):
                        result.weights[trained[k]] = stack.best_of(int(k))
                stack.select(np.flatnonzero(~done))
            result.eval_seconds += time.perf_counter() - start
            result.seed_epochs += len(trained)
            if keep_curve:
                for member, value in zip(trained, scores.train_loss):
                    curves[member].append(float(value))
            if on_epoch is not None:
                on_epoch(epoch, finished)
            if done.all():
                break
        if not len(stack.alive):
            break
        stack.shrink()
    if keep_curve:
        for record, curve in zip(result.records, curves):
            record["curve"] = [value if math.isfinite(value) else None for value in curve]
    return result


def _labels(graph: IncompleteGraph, device: torch.device) -> tuple[dict[str, Tensor], Tensor | None]:
    """The labels of every part of the split, and which of the test nodes are scored (None: all)."""
    nodes = {part: torch.from_numpy(getattr(graph.split, part)) for part in PARTS}
    scored = None
    if graph.split.scored is not None:
        nodes["test"] = torch.from_numpy(graph.split.scored)
        scored = nodes["test"].to(device)
    return {part: torch.from_numpy(graph.labels)[index].to(device) for part, index in nodes.items()}, scored


def _new_stack(network: StackedNetwork, protocols: Sequence[Protocol], streams: DropoutStreams) -> Stack:
    """All members, before the first epoch."""
    first, members = protocols[0], len(protocols)
    rates, decays = ([getattr(own, key) for own in protocols] for key in ("lr", "weight_decay"))
    return Stack(
        network,
        StackedAdam(network, rates, decays, first.decay),
        streams,
        stopping_rule(first.stopping, members, first.patience),
        alive=np.arange(members),
        place=np.arange(members),
        kept=[{} for _ in range(members)],
    )


def _keep_best(stack: Stack, scores: Scores, weights: Mapping[str, Tensor], epoch: int) -> np.ndarray:
    """Keep the weights that the rule calls the best so far; returns which members stop, bool [S]."""
    best, stop = stack.rule.update(scores.val_loss, scores.val_acc)
    if best.any():
        stack.remember(best, weights)
        for k in np.flatnonzero(best):
            stack.kept[k] = {
                "val_loss": float(scores.val_loss[k]),
                "val_acc": float(scores.val_acc[k]),
                "best_epoch": epoch,
            }
    return stop


def _finish(
    stack: Stack,
    done: np.ndarray,
    diverged: np.ndarray,
    epoch: int,
    labels: Tensor,
    scored: Tensor | None,
) -> list[dict[str, Any]]:
    """The records of the members that are done, in stack order; their best weights are tested here, once.

    ``labels`` are those of the test nodes, or of those among them that are ``scored``.
    """
    good = np.flatnonzero(done & ~diverged)
    scores: dict[int, dict[str, float]] = {}
    if len(good):
        index = torch.from_numpy(good).to(labels.device)
        counts = []
        with torch.no_grad():
            for chunk in index.split(TESTED_AT_ONCE):
                best = {name: b.index_select(0, chunk) for name, b in stack.best.items()}
                logits = torch.func.functional_call(stack.network, best, ("test", None))
                logits = logits if scored is None else logits.index_select(1, scored)
                counts.append(confusion(logits, labels).cpu().numpy())
        scores = {int(k): scores_of(own) for k, own in zip(good, np.concatenate(counts))}
    records: list[dict[str, Any]] = []
    for k in np.flatnonzero(done):
        if diverged[k]:
            reason = f"the loss was no longer a finite number after epoch {epoch}"
            records.append({"status": "failed", "reason": reason, "epochs": epoch})
        else:
            peak = {
                "peak_epoch": int(stack.rule.peak_epoch[k]),
                "peak_val_acc": float(stack.rule.best_acc[k]),
            }
            kept = {"status": "ok", **scores[int(k)], **stack.kept[k], "epochs": epoch}
            records.append({**kept, **peak})
    return records
