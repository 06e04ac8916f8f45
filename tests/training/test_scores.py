"""Scores from counts are scikit-learn's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score

from pagnn_bench.training.scores import confusion, scores_of


def test_a_table_of_counts_by_hand():
    logits = torch.zeros(2, 3, 3)
    logits[0, [0, 1, 2], [0, 2, 2]] = 1
    logits[1, [0, 1, 2], [1, 1, 0]] = 1
    counts = confusion(logits, torch.tensor([0, 0, 2])).tolist()
    assert counts[0] == [[1, 0, 1], [0, 0, 0], [0, 0, 1]]
    assert counts[1] == [[0, 2, 0], [0, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize("classes", [1, 2, 7])
def test_equal_to_scikit_learn_also_where_classes_are_absent(classes):
    rng = np.random.default_rng(classes)
    for nodes in (1, 5, 200):
        labels = rng.integers(classes, size=nodes)
        logits = torch.from_numpy(rng.random((4, nodes, classes), dtype=np.float32))
        for member, counts in enumerate(confusion(logits, torch.from_numpy(labels)).numpy()):
            guess = logits[member].argmax(dim=1).numpy()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of classes that are predicted only
                expected = {
                    "test_acc": accuracy_score(labels, guess),
                    "test_macro_f1": f1_score(labels, guess, average="macro", zero_division=0),
                    "test_balanced_acc": balanced_accuracy_score(labels, guess),
                }
            assert scores_of(counts) == pytest.approx(expected, abs=1e-12)
            assert scores_of(counts)["test_acc"] == (guess == labels).sum() / nodes  # to the last digit
