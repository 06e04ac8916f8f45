"""How much a mask reveals about the labels: a method that sees the mask may exploit it."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from pagnn_bench.missing.mask import Observed

FOLDS = 5


def mask_label_share(observed: Observed, labels: np.ndarray) -> float:
    """Share of the label entropy that a node's mask alone explains: 1 - H(y | m) / H(y), from 0 to 1.

    A naive Bayes classifier predicts the label of a node from its row of the mask (whole nodes: from one bit). It is
    fitted on four fifths of the labelled nodes and scored on the rest, in turn, so chance explains nothing. Since it
    treats attributes as independent, its log-likelihood is weighted by whatever factor scores best. The result is a
    lower bound on what the mask reveals, and ignores the masks of neighbours.

    Args:
        observed: the mask.
        labels: int64 [n], -1 where unlabelled.
    """
    labelled = np.random.default_rng(0).permutation(np.flatnonzero(labels >= 0))
    bits = (observed.dense() if observed.rows is None else observed.rows[:, None])[labelled]  # [m, d]
    bits, one_hot = bits.astype(np.float32), np.eye(labels.max() + 1)[labels[labelled]]  # [m, C]
    evidence, prior = np.zeros_like(one_hot), np.zeros_like(one_hot)
    for fold in range(FOLDS):
        held = np.arange(len(labelled)) % FOLDS == fold
        count = one_hot[~held].sum(axis=0)
        seen = ((one_hot[~held].T.astype(np.float32) @ bits[~held]) + 1) / (count[:, None] + 2)  # [C, d]
        log_odds = np.log(seen) - np.log1p(-seen)
        evidence[held] = bits[held] @ log_odds.T + np.log1p(-seen).sum(axis=1)
        prior[held] = np.log((count + 1) / (count + 1).sum())

    def entropy(weight: float) -> float:
        return -float((log_softmax(prior + weight * evidence, axis=1) * one_hot).sum(axis=1).mean())

    best = minimize_scalar(entropy, bounds=(0, 1), method="bounded").fun
    return max(0.0, 1 - best / entropy(0.0)) if entropy(0.0) > 0 else 0.0
