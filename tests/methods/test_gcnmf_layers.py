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
