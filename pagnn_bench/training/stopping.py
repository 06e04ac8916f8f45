"""When to stop, and which epoch to keep: rules by name, for a whole stack of seeds at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np


class StoppingRule(ABC):
    """Watches validation loss and accuracy of S seeds.

    Args:
        members: S.
        patience: stop a seed after this many epochs in a row without progress.
    """

    grace: ClassVar[int] = 0  # training takes more than patience + grace epochs

    def __init__(self, members: int, patience: int) -> None:
        self.patience = patience
        self.best_loss = np.full(members, np.inf)
        self.best_acc = np.full(members, -np.inf)
        self.waited = np.zeros(members, dtype=np.int64)
        self.epoch = 0
        # The first epoch with the highest accuracy.
        self.peak_epoch = np.zeros(members, dtype=np.int64)

    @abstractmethod
    def judge(self, loss: np.ndarray, acc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(progress, best), bool [S]: reset the patience counter; keep these weights."""

    def update(self, loss: np.ndarray, acc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take in one epoch.

        Args:
            loss, acc: validation loss and accuracy, float [S].

        Returns:
            (best, stop), bool [S]: keep these weights; this seed is done.
        """
        self.epoch += 1
        self.peak_epoch = np.where(acc > self.best_acc, self.epoch, self.peak_epoch)
        progress, best = self.judge(loss, acc)
        self.best_loss = np.fmin(self.best_loss, loss)
        self.best_acc = np.fmax(self.best_acc, acc)
        self.waited = np.where(progress, 0, self.waited + 1)
        return best, (self.waited >= self.patience) & (self.epoch > self.patience + self.grace)

    def select(self, keep: np.ndarray) -> None:
        """Continue with only these members of the stack."""
        self.best_loss, self.best_acc, self.waited, self.peak_epoch = (
            values[keep] for values in (self.best_loss, self.best_acc, self.waited, self.peak_epoch)
        )


class ValLoss(StoppingRule):
    """The paper's rule: stop when the validation loss has not decreased for ``patience`` epochs (ties do not count)."""

    def judge(self, loss: np.ndarray, acc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        better = loss < self.best_loss
        return better, better


class Either(StoppingRule):
    """Rule of GCNmf's and the authors' later code: loss *or* accuracy at its best, ties included, resets the counter.

    It keeps the weights of the last epoch at which *both* were at their best.
    """

    def judge(self, loss: np.ndarray, acc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low_loss, high_acc = loss <= self.best_loss, acc >= self.best_acc
        return low_loss | high_acc, low_loss & high_acc


class ValAcc(StoppingRule):
    """Rule of the code of FP and PCFI: only a validation accuracy above all earlier ones counts as progress."""

    grace: ClassVar[int] = 1  # as in that code

    def judge(self, loss: np.ndarray, acc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        better = acc > self.best_acc
        return better, better


class Window(StoppingRule):
    """Rule of Kipf and Welling's code: stop once the validation loss is above its mean of the last ``patience`` epochs.

    It keeps the weights of the last epoch. (Their validation loss includes the L2 penalty, ours does not.)
    """

    grace: ClassVar[int] = 1  # as in that code

    def __init__(self, members: int, patience: int) -> None:
        super().__init__(members, patience)
        self.recent = np.zeros((0, members))  # the losses of the last epochs, at most ``patience`` of them

    def judge(self, loss: np.ndarray, acc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.ones(len(loss), dtype=bool), np.ones(len(loss), dtype=bool)

    def update(self, loss: np.ndarray, acc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        best, _ = super().update(loss, acc)
        full = self.epoch > self.patience + self.grace
        stop = loss > self.recent.mean(axis=0) if full else np.zeros(len(loss), dtype=bool)
        self.recent = np.vstack((self.recent, loss))[-self.patience :]
        return best, stop

    def select(self, keep: np.ndarray) -> None:
        super().select(keep)
        self.recent = self.recent[:, keep]


RULES: dict[str, type[StoppingRule]] = {
    "val_loss": ValLoss,
    "either": Either,
    "val_acc": ValAcc,
    "window": Window,
}


def stopping_rule(name: str, members: int, patience: int) -> StoppingRule:
    """The rule of this name for a stack of ``members`` seeds."""
    return RULES[name](members, patience)
