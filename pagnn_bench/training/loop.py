"""One training loop for every method: S seeds at once, each stopped and kept at its own epoch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pagnn_bench.config.identity import LATER_KEYS
from pagnn_bench.config.schema import NOT_NEGATIVE, POSITIVE, Schema, check_group, one_of, whole
from pagnn_bench.missing import FEATURE_NORMS, IncompleteGraph
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.module_stack import ModuleStack
from pagnn_bench.nn.network import PARTS, StackedNetwork
from pagnn_bench.training.optimiser import DECAYS, StackedAdam
from pagnn_bench.training.stopping import RULES, StoppingRule, stopping_rule

# Of dense inputs and their products; weights, optimiser and losses are float32 always.
PRECISIONS = ("float32", "bfloat16")

# The test nodes are most of a graph: seeds that stop together are tested a few at a time, to bound the memory.
TESTED_AT_ONCE = 4


PROTOCOL: Schema = {
    "lr": POSITIVE,
    "weight_decay": NOT_NEGATIVE,
    "init_gain": POSITIVE,
    "patience": whole(1),
    "max_epochs": whole(1),
    "stopping": one_of(RULES),
    "feature_norm": one_of(FEATURE_NORMS),
    "decay": one_of(DECAYS),
    "precision": one_of(PRECISIONS),
}


@dataclass(frozen=True)
class Protocol:
    """How networks are trained; fields as the keys of ``conf/protocol``."""

    lr: float
    weight_decay: float
    patience: int
    max_epochs: int
    stopping: str
    init_gain: float
    feature_norm: str
    decay: str = "all"
    precision: str = "float32"

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Protocol:
        training = {**LATER_KEYS["protocol"], **config}
        training.pop("tuning")
        check_group("protocol", training, PROTOCOL, "a protocol")
        return cls(**{key: training[key] for key in PROTOCOL})


@dataclass
class TrainingResult:
    """Records of S trials and where the time went.

    Attributes:
        records: one dict per seed, in the order of the stack: status, test_acc, val_acc, val_loss, best_epoch, epochs,
            peak_epoch and peak_val_acc, the highest validation accuracy of all epochs, which a rule need not keep (and
            reason of a failed one, curve if asked for).
        train_seconds: forward, backward and step of all epochs, evaluation excluded.
        eval_seconds: validation of all epochs and the test evaluations.
        seed_epochs: Σ epochs over the seeds: train_seconds / seed_epochs is the time of one epoch of one seed.
    """

    records: list[dict[str, Any]]
    train_seconds: float = 0.0
    eval_seconds: float = 0.0
    seed_epochs: int = 0


@dataclass
class _Stack:
    """The seeds still in training, and the best weights seen of each."""

    network: StackedNetwork
    optimizer: StackedAdam
    streams: DropoutStreams
    rule: StoppingRule
    alive: np.ndarray  # position of each member in the original order
    kept: list[dict[str, Any]]  # epoch and scores of the best weights
    best: dict[str, Tensor] = field(default_factory=dict)

    def remember(self, members: np.ndarray) -> None:
        """Keep a copy of the present weights of these members (bool [S])."""
        parameters = dict(self.network.named_parameters())
        if not self.best:
            self.best = {name: p.detach().clone() for name, p in parameters.items()}
            return
        index = torch.from_numpy(np.flatnonzero(members)).to(self.streams.device)
        for name, p in parameters.items():
            self.best[name].index_copy_(0, index, p.detach().index_select(0, index))

    def select(self, keep: np.ndarray) -> None:
        """Go on with these members only: weights, optimiser state, dropout streams, patience and best weights."""
        index = torch.from_numpy(keep).to(self.streams.device)
        before = dict(self.network.named_parameters())
        self.network.replace({name: p.detach().index_select(0, index) for name, p in before.items()})
        self.optimizer = self.optimizer.selected(self.network, keep)
        self.best = {name: b.index_select(0, index) for name, b in self.best.items()}
        self.streams.select(keep.tolist())
        self.rule.select(keep)
        self.alive = self.alive[keep]
        self.kept = [self.kept[k] for k in keep]


def train(
    network: StackedNetwork,
    graph: IncompleteGraph,
    protocol: Protocol | Sequence[Protocol],
    dropout_seeds: Sequence[int],
    device: torch.device,
    keep_curve: bool = False,
    on_epoch: Callable[[int, Sequence[dict[str, Any]]], None] | None = None,
    dropout_rates: Sequence[float] | None = None,
) -> TrainingResult:
    """Train all members of a stack to their own early stop.

    The members share nothing but the matrix products: losses are summed over the stack, so each gradient is that of
    the seed alone; a member that stops, or whose loss is no longer finite, leaves the stack.

    Args:
        network: S stacked networks.
        graph: labels and split.
        protocol: optimiser and stopping rule; one per member in a stack of settings, which may differ in learning rate
            and weight decay only.
        dropout_seeds: one per member.
        device: where the network lives.
        keep_curve: keep the training loss of every epoch in the record.
        on_epoch: called after every epoch with the epoch and the records that it finished.
        dropout_rates: one per member in a stack of settings that differ in it.
    """
    nodes = {part: torch.from_numpy(getattr(graph.split, part)) for part in PARTS}
    labels = {part: torch.from_numpy(graph.labels)[index].to(device) for part, index in nodes.items()}
    members = len(dropout_seeds)
    protocols = [protocol] * members if isinstance(protocol, Protocol) else list(protocol)
    protocol = _common(protocols)
    rates, decays = ([getattr(own, key) for own in protocols] for key in ("lr", "weight_decay"))
    stack = _Stack(
        network,
        StackedAdam(network, rates, decays, protocol.decay),
        DropoutStreams(dropout_seeds, device, dropout_rates),
        stopping_rule(protocol.stopping, members, protocol.patience),
        alive=np.arange(members),
        kept=[{} for _ in range(members)],
    )
    result = TrainingResult(records=[{} for _ in range(members)])
    curves: list[list[float]] = [[] for _ in range(members)]

    for epoch in range(1, protocol.max_epochs + 1):
        start = _clock(device)
        losses = _train_step(stack, labels["train"])
        trained = _clock(device)
        scores = _validate(stack, losses, labels["val"])
        result.seed_epochs += len(stack.alive)
        if keep_curve:
            for member, value in zip(stack.alive, scores.train_loss):
                curves[member].append(float(value))
        stop = _keep_best(stack, scores, epoch)
        done = stop | scores.diverged | (epoch == protocol.max_epochs)
        finished: list[dict[str, Any]] = []
        if done.any():
            finished = _finish(stack, done, scores.diverged, epoch, labels["test"])
            for member, record in zip(stack.alive[done], finished):
                result.records[member] = record
            if not done.all():
                stack.select(np.flatnonzero(~done))
        result.train_seconds += trained - start
        result.eval_seconds += _clock(device) - trained
        if on_epoch is not None:
            on_epoch(epoch, finished)
        if done.all():
            break
    if keep_curve:
        for record, curve in zip(result.records, curves):
            record["curve"] = [value if math.isfinite(value) else None for value in curve]
    return result


class _Scores(NamedTuple):
    """An epoch of the stack, each float [S]."""

    train_loss: np.ndarray
    val_loss: np.ndarray
    val_acc: np.ndarray

    @property
    def diverged(self) -> np.ndarray:
        """bool [S]: whose loss is no longer a finite number."""
        return ~(np.isfinite(self.train_loss) & np.isfinite(self.val_loss))


def _train_step(stack: _Stack, labels: Tensor) -> Tensor:
    """One step of every member; their training losses [S] before it."""
    stack.network.zero_grad(set_to_none=True)
    if isinstance(stack.network, ModuleStack):
        losses = stack.network.backward(stack.streams, lambda logits: _losses(logits, labels))
    else:
        losses = _losses(stack.network("train", stack.streams), labels)
        losses.sum().backward()
    stack.optimizer.step()
    return losses


def _validate(stack: _Stack, losses: Tensor, labels: Tensor) -> _Scores:
    """Loss and accuracy of every member on the validation nodes, beside its training loss."""
    with torch.no_grad():
        logits = stack.network("val", None)
        scores = torch.stack((losses, _losses(logits, labels), _correct(logits, labels)))
    # The only transfer from the device in an epoch.
    train_loss, val_loss, val_correct = scores.double().cpu().numpy()
    return _Scores(train_loss, val_loss, val_correct / len(labels))


def _keep_best(stack: _Stack, scores: _Scores, epoch: int) -> np.ndarray:
    """Keep the weights that the rule says are the best so far; who is to stop, bool [S]."""
    best, stop = stack.rule.update(scores.val_loss, scores.val_acc)
    if best.any():
        stack.remember(best)
        for k in np.flatnonzero(best):
            stack.kept[k] = {
                "val_loss": float(scores.val_loss[k]),
                "val_acc": float(scores.val_acc[k]),
                "best_epoch": epoch,
            }
    return stop


def _finish(
    stack: _Stack, done: np.ndarray, diverged: np.ndarray, epoch: int, labels: Tensor
) -> list[dict[str, Any]]:
    """The records of the members that are done, in stack order; their best weights are tested here, once."""
    good = np.flatnonzero(done & ~diverged)
    test_acc: dict[int, float] = {}
    if len(good):
        index = torch.from_numpy(good).to(labels.device)
        correct = []
        with torch.no_grad():
            for few in index.split(TESTED_AT_ONCE):
                best = {name: b.index_select(0, few) for name, b in stack.best.items()}
                logits = torch.func.functional_call(stack.network, best, ("test", None))
                correct.append(_correct(logits, labels).double().cpu().numpy())
        test_acc = {int(k): float(c) / len(labels) for k, c in zip(good, np.concatenate(correct))}
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
            kept = {"status": "ok", "test_acc": test_acc[int(k)], **stack.kept[k], "epochs": epoch}
            records.append({**kept, **peak})
    return records


def _common(protocols: Sequence[Protocol]) -> Protocol:
    """What the members of a stack must have in common, as the protocol of the first."""
    first = protocols[0]
    if any(replace(own, lr=first.lr, weight_decay=first.weight_decay) != first for own in protocols):
        raise ValueError("the members of a stack differ in more than learning rate and weight decay")
    return first


def _losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross entropy of every member: logits [S, m, C], labels [m] → [S]."""
    members, count, _ = logits.shape
    target = labels.expand(members, count)
    return F.cross_entropy(logits.transpose(1, 2), target, reduction="none").mean(dim=1)


def _correct(logits: Tensor, labels: Tensor) -> Tensor:
    """How many nodes are classified correctly: [S, m, C], [m] → [S], whole numbers."""
    return (logits.argmax(dim=2) == labels).sum(dim=1).to(logits.dtype)


def _clock(device: torch.device) -> float:
    """Seconds, once the device has done all it was asked to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
