"""Scores of predicted classes, from a table of counts: accuracy, macro-F1, balanced accuracy.

All definitions are scikit-learn's. The table is all that leaves the device.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def confusion(logits: Tensor, labels: Tensor) -> Tensor:
    """How often class a is predicted as class b, per member: logits [S, m, C], labels [m] → int64 [S, C, C]."""
    members, _, classes = logits.shape
    member = torch.arange(members, device=labels.device)[:, None]
    pair = (member * classes + labels) * classes + logits.argmax(dim=2)  # [S, m], a number for (member, a, b)
    counts = torch.bincount(pair.flatten(), minlength=members * classes**2)
    return counts.view(members, classes, classes)


def scores_of(counts: np.ndarray) -> dict[str, float]:
    """The scores on the test nodes, as recorded.

    Args:
        counts: [C, C], rows are true classes.

    Returns:
        ``test_acc``: share of nodes classified correctly. ``test_macro_f1``: mean of 2 TP / (2 TP + FP + FN) over the
        classes that occur or are predicted. ``test_balanced_acc``: mean of the share classified correctly over the
        classes that occur.
    """
    correct, occurs, predicted = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    either = occurs + predicted > 0
    f1 = 2 * correct[either] / (occurs + predicted)[either]
    return {
        "test_acc": float(correct.sum() / counts.sum()),
        "test_macro_f1": float(f1.mean()),
        "test_balanced_acc": float((correct[occurs > 0] / occurs[occurs > 0]).mean()),
    }
