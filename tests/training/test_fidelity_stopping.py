"""Stopping rules against public code that scripted scores were played to: see tests/methods/fidelity/README.md."""

from __future__ import annotations

import numpy as np

from tests.methods.fidelity import stored
from tests.training.test_stopping import play

GCNMF, OTHERS = stored("stopping_gcnmf"), stored("stopping_pcfi_gcn")


def cases(arrays):
    return zip(arrays["loss"], arrays["accuracy"], arrays["patience"].tolist())


def test_either_is_the_rule_of_gcnmf():
    """NodeClsTrainer.run with EarlyStopping.check: epochs trained, and the epoch whose weights are stored.

    Where training ends without a stop, theirs tests the weights of the last epoch, ours those that were stored.
    """
    length = GCNMF["loss"].shape[1]
    for k, (loss, acc, patience) in enumerate(cases(GCNMF)):
        stop, kept = play("either", loss, acc, patience)
        assert (stop is not None) == GCNMF["stopped"][k]
        assert (stop or length) == GCNMF["epochs"][k]
        assert kept[-1] == GCNMF["best"][k]
        assert GCNMF["used"][k] == (kept[-1] if stop else length)
    assert 10 < GCNMF["stopped"].sum() < len(GCNMF["stopped"])


def first_is_best_for_long(acc, patience):
    return acc[1 : patience + 1].max() <= acc[0]


def test_val_acc_is_the_rule_of_pcfi():
    """run() of run_node.py (the same lines as in run.py of FP): epochs trained, and the epoch that is tested."""
    length, compared = OTHERS["loss"].shape[1], 0
    for k, (loss, acc, patience) in enumerate(cases(OTHERS)):
        if first_is_best_for_long(acc, patience):
            continue
        stop, kept = play("val_acc", loss, acc, patience)
        assert (stop or length, kept[-1]) == (OTHERS["pcfi_epochs"][k], OTHERS["pcfi_used"][k])
        compared += 1
    assert compared == 55


def test_val_acc_where_the_first_epoch_is_the_best():
    """run() of run_node.py, where no epoch up to patience + 1 is better than the first one."""
    for k, (loss, acc, patience) in enumerate(cases(OTHERS)):
        if first_is_best_for_long(acc, patience):
            stop, kept = play("val_acc", loss, acc, patience)
            assert (stop, kept[-1]) == (OTHERS["pcfi_epochs"][k], OTHERS["pcfi_used"][k])


def rises_at_once(loss, patience):
    return loss[patience] > loss[:patience].mean()


def test_window_is_the_rule_of_kipf_and_welling():
    """The loop of train.py: epochs trained."""
    length, compared = OTHERS["loss"].shape[1], 0
    for k, (loss, acc, patience) in enumerate(cases(OTHERS)):
        if rises_at_once(loss, patience):
            continue
        stop, kept = play("window", loss, acc, patience)
        assert (stop or length) == OTHERS["gcn_epochs"][k] == kept[-1]
        compared += 1
    assert compared == 59


def test_window_where_the_loss_rises_at_once():
    """The loop of train.py, where the loss in epoch patience + 1 is above the mean of all before it."""
    for k, (loss, acc, patience) in enumerate(cases(OTHERS)):
        if rises_at_once(loss, patience):
            assert play("window", loss, acc, patience)[0] == OTHERS["gcn_epochs"][k]


def test_scripts_have_ties_and_are_not_all_alike():
    for arrays in (GCNMF, OTHERS):
        assert any(len(np.unique(acc)) < len(acc) for acc in arrays["accuracy"])
        assert len(np.unique(arrays["patience"])) > 4
