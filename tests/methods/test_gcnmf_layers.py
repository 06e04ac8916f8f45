"""GCNmf's responsibilities against Bayes' rule."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.stats import norm

from pagnn_bench.baselines.gcnmf_layers import Mixture, Responsibilities
from tests.methods.gcnmf_cases import CPU


@pytest.mark.parametrize("floor", [1.0, 1e-6])
@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_responsibilities(pattern, floor):
    """Bayes' rule over the observed attributes, down to the smallest variances; no attribute at all leaves π."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 5)).astype(np.float32)
    known = rng.random((6, 5)) < 0.6
    known[2], known[3] = False, True
    if pattern == "rows":
        known = np.repeat(known[:, :1] & (np.arange(6) != 2)[:, None], 5, axis=1)
    # Every component is near one of the nodes, so that the nearest terms are small and not only large ones.
    mu = (x[:3] + np.sqrt(floor) * rng.normal(size=(3, 5))).astype(np.float32)
    log_sigma2 = np.log(floor * (0.5 + rng.random((3, 5)))).astype(np.float32)
    log_pi = np.log([0.5, 0.3, 0.2]).astype(np.float32)
    layer = Responsibilities(
        sp.csr_array(x * known), known[:, :1] if pattern == "rows" else known, log_det=True, device=CPU
    )
    mixture = Mixture(*(torch.from_numpy(p)[None] for p in (log_pi, mu, log_sigma2)))
    gamma = layer(mixture)[0]
    logits = np.empty((6, 3))
    for i in range(6):
        for k in range(3):
            own = known[i]
            density = norm.logpdf(
                x[i].astype(float), mu[k].astype(float), np.exp(log_sigma2[k].astype(float) / 2)
            )
            logits[i, k] = log_pi[k] + density[own].sum()
    expected = np.exp(logits - logits.max(1, keepdims=True))
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(gamma, expected, atol=1e-5)
    np.testing.assert_allclose(gamma[2], [0.5, 0.3, 0.2], rtol=1e-6)


def test_only_what_single_precision_cannot_decide_is_computed_in_double():
    """Rows far from all components but one, rows between two, and the bound of the error that tells them apart."""
    rng = np.random.default_rng(0)
    mu = rng.normal(size=(3, 200)).astype(np.float32)
    x = np.concatenate((mu, (mu[:1] + mu[1:2]) / 2)).astype(np.float32)
    known = rng.random(x.shape) < 0.8
    layer = Responsibilities(sp.csr_array(x * known), known, log_det=True, device=CPU)
    mixture = Mixture(torch.zeros(1, 3), torch.from_numpy(mu)[None], torch.full((1, 3, 200), -3.0))
    distance = ((x[:, None] - mu) ** 2 * np.exp(3.0) * known[:, None]).sum(2)
    logits = torch.from_numpy(-0.5 * distance)
    constant = (mixture.mu.double() ** 2 * np.exp(3.0) - 3.0).mT
    clean = layer.features(
        torch.cat((torch.full_like(constant, np.exp(3.0)), -2 * np.exp(3.0) * mixture.mu.double().mT), 1)
    )
    certain, doubtful = layer._certain(-0.5 * clean, constant)
    assert doubtful.tolist() == [3]
    assert torch.equal(certain[0, :3], torch.eye(3))
    np.testing.assert_allclose(layer(mixture)[0], torch.softmax(logits, 1), atol=1e-5)
