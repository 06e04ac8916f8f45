"""What a mask reveals about the labels, against entropies worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pagnn_bench.missing import Observed
from pagnn_bench.missing.label_share import mask_label_share

N = 6000
LABELS = np.arange(N) % 3


def entropy(shares):
    shares = np.asarray(shares, dtype=float)
    return -(shares * np.log(shares, out=np.zeros_like(shares), where=shares > 0)).sum()


def test_a_random_mask_tells_nothing():
    rng = np.random.default_rng(1)
    assert mask_label_share(Observed((N, 4), rows=rng.random(N) < 0.5), LABELS) < 0.002
    assert mask_label_share(Observed((N, 40), cells=rng.random((N, 40)) < 0.5), LABELS) < 0.002


def test_one_class_hidden_as_a_whole():
    """Of three equal classes one is missing: H(y) = log 3, H(y | m) = 2/3 log 2."""
    share = mask_label_share(Observed((N, 4), rows=LABELS > 0), LABELS)
    assert share == pytest.approx(1 - 2 / 3 * np.log(2) / np.log(3), abs=0.005)


def test_rates_by_class():
    """P(observed | class) = 0.2, 0.5, 0.8; the mutual information of one bit and the class."""
    rates = np.array([0.2, 0.5, 0.8])
    rows = np.random.default_rng(2).random(N) < rates[LABELS]
    joint = np.stack([rates, 1 - rates]) / 3  # [2, 3]
    information = entropy(joint.sum(axis=1)) + np.log(3) - entropy(joint.ravel())
    expected = information / np.log(3)
    assert mask_label_share(Observed((N, 4), rows=rows), LABELS) == pytest.approx(expected, abs=0.01)


def test_single_entries_tell_together():
    """Attribute j is missing in class j only: the mask is the label."""
    cells = np.arange(3) != LABELS[:, None]
    assert mask_label_share(Observed((N, 3), cells=cells), LABELS) > 0.98


def test_attributes_that_say_the_same_twice_are_not_counted_twice():
    """Fifty copies of one bit hold as much as the bit."""
    rows = np.random.default_rng(2).random(N) < np.array([0.2, 0.5, 0.8])[LABELS]
    once = mask_label_share(Observed((N, 50), rows=rows), LABELS)
    copies = Observed((N, 50), cells=np.repeat(rows[:, None], 50, axis=1))
    assert mask_label_share(copies, LABELS) == pytest.approx(once, abs=0.002)


def test_unlabelled_nodes_and_single_classes_do_no_harm():
    labels = np.where(np.arange(N) < 60, LABELS, -1)
    rows = np.arange(N) < 30
    assert 0 <= mask_label_share(Observed((N, 4), rows=rows), labels) < 0.2
    assert mask_label_share(Observed((N, 4), rows=rows), np.zeros(N, dtype=int)) == 0
