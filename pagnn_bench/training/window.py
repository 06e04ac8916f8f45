"""The epochs that are trained between two looks at the scores: one on a CPU, several on a device."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pagnn_bench.training.clock import Clock
from pagnn_bench.training.stack import Stack

# Reading from a device means waiting for it. So a GPU trains this many epochs at a time and copies the weights after
# each, as far as the copies fit. The rules then go through the epochs one by one, so the same weights are kept. A
# member that stopped in between has trained on in vain: on average 5 epochs of about 400.
LOOK_EVERY = 10
WINDOW_BYTES = 1 << 28


class Scores(NamedTuple):
    """The scores of one epoch, each float [S]."""

    train_loss: np.ndarray
    val_loss: np.ndarray
    val_acc: np.ndarray

    @property
    def diverged(self) -> np.ndarray:
        """bool [S]: True where the loss is no longer finite."""
        return ~(np.isfinite(self.train_loss) & np.isfinite(self.val_loss))

    def of(self, members: np.ndarray) -> Scores:
        """The scores of only these members."""
        return Scores(*(values[members] for values in self))


class Window(NamedTuple):
    """Epochs that were trained between two looks at the scores: scores and weights after each of them."""

    scores: list[Scores]
    weights: list[dict[str, Tensor]]
    train_seconds: float
    eval_seconds: float


def epochs_at_once(stack: Stack, device: torch.device) -> int:
    """How many epochs to train at a time; 1 if reading costs no waiting."""
    if device.type == "cpu":
        return 1
    size = sum(p.numel() * p.element_size() for p in stack.weights().values())
    return max(1, min(LOOK_EVERY, WINDOW_BYTES // max(1, size)))


def train_window(stack: Stack, labels: Mapping[str, Tensor], epochs: int, clock: Clock) -> Window:
    """Train some epochs and read from the device once."""
    scores, weights, moments = [], [], [clock.now()]
    for _ in range(epochs):
        losses = _train_step(stack, labels["train"])
        moments.append(clock.now())
        scores.append(_validate(stack, losses, labels["val"]))
        now = stack.weights()
        # Copied, because the next step changes them in place.
        weights.append(now if epochs == 1 else {name: p.clone() for name, p in now.items()})
        moments.append(clock.now())
    read = torch.stack(scores).double().cpu().numpy()  # the only transfer from the device
    seconds = [clock.between(*pair) for pair in pairwise(moments)]
    return Window(
        [Scores(train, val, correct / len(labels["val"])) for train, val, correct in read],
        weights,
        sum(seconds[::2]),
        sum(seconds[1::2]),
    )


def _train_step(stack: Stack, labels: Tensor) -> Tensor:
    """Make one step with every member; returns their training losses [S] before it."""
    stack.network.zero_grad(set_to_none=True)
    losses = stack.network.backward(stack.streams, lambda logits: _losses(logits, labels))
    stack.optimizer.step()
    return losses


def _validate(stack: Stack, losses: Tensor, labels: Tensor) -> Tensor:
    """Training loss, and loss and number of correct validation nodes of every member: [3, S]."""
    with torch.no_grad():
        logits = stack.network("val", None)
        return torch.stack((losses, _losses(logits, labels), _correct(logits, labels)))


def _losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross entropy of every member: logits [S, m, C], labels [m] → [S]."""
    members, count, _ = logits.shape
    target = labels.expand(members, count)
    return F.cross_entropy(logits.transpose(1, 2), target, reduction="none").mean(dim=1)


def _correct(logits: Tensor, labels: Tensor) -> Tensor:
    """How many nodes are classified correctly: [S, m, C], [m] → [S], whole numbers."""
    return (logits.argmax(dim=2) == labels).sum(dim=1).to(logits.dtype)
