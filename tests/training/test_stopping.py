"""Stopping rules on scripted sequences of validation loss and accuracy."""

from __future__ import annotations

import numpy as np

from pagnn_bench.training.stopping import stopping_rule

NAN = float("nan")


def play(name: str, losses: list[float], accs: list[float], patience: int) -> tuple[int | None, list[int]]:
    """(epoch of the stop or None, epochs whose weights were kept) of one seed."""
    rule, kept = stopping_rule(name, 1, patience), []
    for epoch, (loss, acc) in enumerate(zip(losses, accs), start=1):
        best, stop = rule.update(np.array([loss]), np.array([acc]))
        if best[0]:
            kept.append(epoch)
        if stop[0]:
            return epoch, kept
    return None, kept


def test_val_loss_stops_after_patience_epochs_without_decrease():
    assert play("val_loss", [3, 2, 2.5, 2.4, 2.3, 1], [0] * 6, patience=3) == (5, [1, 2])


def test_val_loss_a_tie_is_no_decrease():
    assert play("val_loss", [2, 2, 2], [0.1, 0.9, 0.9], patience=2) == (3, [1])


def test_val_loss_a_decrease_resets_the_counter():
    assert play("val_loss", [3, 4, 2, 4, 4], [0] * 5, patience=2) == (5, [1, 3])


def test_either_resets_on_loss_or_accuracy_and_keeps_both_best():
    losses = [3.0, 4.0, 2.0, 5.0, 5.0, 1.0]
    accs = [0.5, 0.6, 0.4, 0.3, 0.3, 0.7]
    #       both  acc   loss  -     -     both
    assert play("either", losses, accs, patience=3) == (None, [1, 6])
    assert play("either", losses, accs, patience=2) == (5, [1])


def test_either_ties_count():
    assert play("either", [2, 2, 2], [0.5, 0.5, 0.5], patience=1) == (None, [1, 2, 3])
    # accuracy ties, loss worse: goes on, but these are not the weights to keep
    assert play("either", [2, 3, 3], [0.5, 0.5, 0.5], patience=1) == (None, [1])
    # accuracy worse, loss ties: likewise
    assert play("either", [2, 2, 2], [0.5, 0.4, 0.4], patience=1) == (None, [1])


def test_nan_is_never_progress_of_the_loss():
    assert play("val_loss", [2, NAN, NAN], [0.5] * 3, patience=2) == (3, [1])
    # With `either` the accuracy may still reset the counter: ending such a seed is the trainer's business.
    assert play("either", [2, NAN, NAN], [0.5, 0.5, 0.4], patience=1) == (3, [1])
    # and a NaN does not become the loss to beat
    assert play("val_loss", [2, NAN, 1.5, 1.6], [0.5] * 4, patience=2) == (None, [1, 3])


def test_members_are_independent_and_can_leave():
    rule = stopping_rule("val_loss", 3, 2)
    rule.update(np.array([1.0, 1.0, 1.0]), np.zeros(3))
    best, stop = rule.update(np.array([0.5, 2.0, 2.0]), np.zeros(3))
    assert best.tolist() == [True, False, False]
    assert not stop.any()
    rule.select(np.array([0, 2]))
    best, stop = rule.update(np.array([0.6, 2.0]), np.zeros(2))
    assert not best.any()
    assert stop.tolist() == [False, True]


def test_val_acc_wants_a_strictly_higher_accuracy():
    assert play("val_acc", [9, 9, 1, 1], [0.5, 0.6, 0.6, 0.5], patience=2) == (4, [1, 2])
    assert play("val_acc", [9, 9, 9, 9], [0.5, 0.4, 0.6, 0.5], patience=2) == (None, [1, 3])


def test_window_stops_above_the_mean_of_the_last_epochs_and_keeps_the_last_weights():
    # From the fourth epoch on the loss is held against the mean of the two before: 1.75, then 1.5.
    assert play("window", [3, 2, 1.5, 1.5, 1.6, 1], [0] * 6, patience=2) == (5, [1, 2, 3, 4, 5])
    rule = stopping_rule("window", 2, 1)
    for _ in range(2):
        rule.update(np.array([2.0, 2.0]), np.zeros(2))
    rule.select(np.array([1]))
    _, stop = rule.update(np.array([2.1]), np.zeros(1))
    assert stop.tolist() == [True]


def test_the_first_epoch_of_the_highest_accuracy_is_known():
    rule = stopping_rule("either", 2, 9)
    for accs in ([0.5, 0.1], [0.7, 0.1], [0.7, 0.2], [0.6, 0.1]):
        rule.update(np.ones(2), np.array(accs))
    assert rule.peak_epoch.tolist() == [2, 3]
    rule.select(np.array([1]))
    assert rule.peak_epoch.tolist() == [3]
