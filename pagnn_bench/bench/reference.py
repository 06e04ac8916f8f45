"""The reference: a training loop with torch_geometric's layers, as a user would write it; one seed after the other.

It is not slowed down on purpose: normalised adjacencies are cached, features are made dense once, denominators of
PaGNN are computed once, the same number of threads is used, and the test accuracy of the best epoch is kept instead
of a copy of the weights. It lacks what this package is about: many seeds at once, sparse products, cheap dropout, only
the rows that matter.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from pagnn_bench.missing import IncompleteGraph
from pagnn_bench.training.clock import wait_for
from pagnn_bench.training.protocol import Protocol
from pagnn_bench.training.stopping import stopping_rule


@dataclass(frozen=True)
class PlainResult:
    """The record of the weights that the rule keeps (accuracies, best_epoch, epochs), and times."""

    record: dict[str, Any]
    train_seconds: float
    eval_seconds: float


def train_plain(
    build: Callable[[], nn.Module],
    graph: IncompleteGraph,
    protocol: Protocol,
    seed: int,
    device: torch.device,
) -> PlainResult:
    """Train one network to its early stop; every epoch measures train, validation and test accuracy.

    Args:
        build: makes the network; called without arguments it gives logits [n, C].
        graph: labels and split.
        protocol: optimiser and stopping rule, the same as ours.
        seed: of weights and dropout.
        device: where the network lives.
    """
    nodes = {
        part: torch.from_numpy(getattr(graph.split, part)).to(device) for part in ("train", "val", "test")
    }
    labels = torch.from_numpy(graph.labels).to(device)
    rule = stopping_rule(protocol.stopping, 1, protocol.patience)
    record: dict[str, Any] = {}
    train_seconds = eval_seconds = 0.0
    # torch's dropout draws from the global generator, which is restored for the caller.
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = build().to(device)
        _initialise(model, protocol.init_gain)
        optimizer = torch.optim.Adam(model.parameters(), lr=protocol.lr, weight_decay=protocol.weight_decay)
        model.eval()
        with torch.no_grad():
            model()  # fills the caches of the layers before the clock starts
        for epoch in range(1, protocol.max_epochs + 1):
            start = _clock(device)
            model.train()
            optimizer.zero_grad()
            loss = F.cross_entropy(model()[nodes["train"]], labels[nodes["train"]])
            loss.backward()
            optimizer.step()
            trained = _clock(device)
            model.eval()
            with torch.no_grad():
                logits = model()
                val_loss = float(F.cross_entropy(logits[nodes["val"]], labels[nodes["val"]]))
                correct = logits.argmax(dim=1) == labels
                accuracy = {part: float(correct[index].float().mean()) for part, index in nodes.items()}
            best, stop = rule.update(np.array([val_loss]), np.array([accuracy["val"]]))
            if best[0]:
                record = {f"{part}_acc": value for part, value in accuracy.items()}
                record |= {"val_loss": val_loss, "best_epoch": epoch}
            train_seconds += trained - start
            eval_seconds += _clock(device) - trained
            if stop[0]:
                break
    return PlainResult({**record, "epochs": epoch}, train_seconds, eval_seconds)


def _initialise(model: nn.Module, gain: float) -> None:
    """Xavier-uniform weights with the gain of the protocol; biases are 0 already."""
    for name, parameter in model.named_parameters():
        if name.endswith("lin.weight"):
            nn.init.xavier_uniform_(parameter, gain)


def _clock(device: torch.device) -> float:
    wait_for(device)
    return time.perf_counter()
