"""GCNmf against numbers of its public code (marblet/GCNmf), on small stored graphs: see fidelity/README.md."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
import torch
import torch.nn.functional as F

from pagnn_bench.baselines.gcnmf import fit_mixture
from pagnn_bench.baselines.gcnmf_layers import Mixture
from pagnn_bench.baselines.gcnmf_moments import OuterMoments, PairMoments
from pagnn_bench.baselines.gcnmf_relu import expected_relu
from pagnn_bench.methods.base import Context
from pagnn_bench.nn.propagate import symmetric_operator
from tests.methods.fidelity import CPU, GivenDropout, incomplete, stored
from tests.methods.gcnmf_cases import gcnmf, in_full

PUBLIC = stored("gcnmf")
PARAMETERS = ("weight1", "bias1", "weight2", "bias2", "log_pi", "mu", "log_sigma2")
patterns = pytest.mark.parametrize("pattern", ["rows", "cells"])


def close(found, name, atol=1e-5, rtol=1e-5):
    found = found.detach().numpy() if isinstance(found, torch.Tensor) else found
    np.testing.assert_allclose(found, PUBLIC[name], atol=atol, rtol=rtol, err_msg=name)


def network(pattern, quirks, dropout=0.0):
    """Our network with the stored parameters, on all nodes."""
    graph = incomplete(PUBLIC, PUBLIC[f"{pattern}_observed"])
    assert (graph.observed.rows is not None) == (pattern == "rows")
    method = gcnmf(hidden=5, components=3, dropout=dropout, reference_quirks=quirks)
    ours = method.prepare(graph, Context(seed=0, device=CPU)).network([0], 1.0)
    given = {name: torch.from_numpy(PUBLIC[name])[None] for name in PARAMETERS}
    given |= {name: given[name][:, None] for name in ("bias1", "bias2")}
    ours.replace(given)
    return ours


@patterns
def test_evaluation_with_quirks(pattern):
    """GCNmf.forward in evaluation mode, its logits before the log-softmax and after it."""
    logits = network(pattern, quirks=True)("test", None)[0]
    close(logits, f"{pattern}_logits")
    close(F.log_softmax(logits, dim=1), f"{pattern}_log_softmax")


@patterns
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_training_with_quirks(pattern, dropout):
    """GCNmf.forward in training mode, nll_loss on the training nodes, and the gradient of every parameter.

    With dropout under the masks that the public code drew: one for every component, and one for the hidden layer.
    """
    tag = f"{pattern}_dropout" if dropout else f"{pattern}_plain"
    masks = [*PUBLIC[f"{tag}_keep_input"], PUBLIC[f"{tag}_keep_hidden"]] if dropout else []
    streams = GivenDropout(masks, dropout)
    ours = network(pattern, True, dropout)
    logits = ours("train", streams)[0]
    assert not streams.masks
    close(F.log_softmax(logits, dim=1), f"{tag}_log_softmax")
    train = torch.from_numpy(PUBLIC["train"])
    loss = F.cross_entropy(logits[train], torch.from_numpy(PUBLIC["labels"])[train])
    close(loss, f"{tag}_loss")
    loss.backward()
    for name, parameter in ours.named_parameters():
        close(parameter.grad.reshape(PUBLIC[name].shape), f"{tag}_grad_{name}", rtol=1e-4)


def in_full_of_one_seed(moments: OuterMoments | PairMoments) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """u and s [n, K, h], and where γ is not 0: for single entries u and s exist only there."""
    if isinstance(moments, OuterMoments):
        u, s = in_full(moments.outer)
        return u[0].detach(), s[0].detach(), np.ones(moments.gamma[0].shape, dtype=bool)
    needed = moments.pairs.needed[0]
    u, s = torch.zeros(2, needed.numel(), moments.u.shape[1])
    u[moments.pairs.flat], s[moments.pairs.flat] = moments.u.detach(), moments.s.detach()
    return u.unflatten(0, needed.shape), s.unflatten(0, needed.shape), needed.numpy()


@patterns
def test_where_the_corrected_form_differs(pattern):
    """GCNmfConv.forward and calc_responsibility: ours by default differs in two quantities and in no third.

    γ gets the log-determinant of each component over the observed attributes, γ' ∝ γ exp(-½ Σ_f m_f log σ²_kf), and
    both biases come after aggregation: u' = u - d̂ b₁ + b₁ with d̂ the row sums of Â. Made from the public u, s and γ by
    these two rules, the logits are ours; with the public γ and biases they are not.
    """
    ours = network(pattern, quirks=False)
    mixture = Mixture(ours.log_pi, ours.mu, ours.log_sigma2)
    moments = ours.parts["test"].evaluate(ours.weight1, torch.zeros_like(ours.bias1), mixture, None, 0.0)
    u, s, weighty = in_full_of_one_seed(moments)
    gamma = moments.gamma[0].detach()
    observed = PUBLIC[f"{pattern}_observed"].astype(float)
    operator = symmetric_operator(incomplete(PUBLIC, observed > 0).adjacency).toarray()
    sums = operator.sum(1)

    expected = PUBLIC[f"{pattern}_u"] - np.multiply.outer(sums, PUBLIC["bias1"])
    np.testing.assert_allclose(u.movedim(1, 0)[weighty.T], expected[weighty.T], atol=1e-5)
    np.testing.assert_allclose(s.movedim(1, 0)[weighty.T], PUBLIC[f"{pattern}_s"][weighty.T], atol=1e-5)
    plain = PUBLIC[f"{pattern}_gamma"].T  # [n, K]
    corrected = plain * np.exp(-0.5 * observed @ PUBLIC["log_sigma2"].T)
    corrected /= corrected.sum(1, keepdims=True)
    np.testing.assert_allclose(gamma, corrected, atol=1e-5)
    assert np.abs(corrected - plain).max() > 0.1
    unseen = ~observed.any(axis=1)  # both are π where nothing is observed
    assert unseen.any()
    prior = np.exp(PUBLIC["log_pi"]) / np.exp(PUBLIC["log_pi"]).sum()
    np.testing.assert_allclose(gamma[unseen], np.tile(prior, (unseen.sum(), 1)), atol=1e-5)

    inner = torch.from_numpy(expected + PUBLIC["bias1"])
    spread = expected_relu(inner, torch.from_numpy(PUBLIC[f"{pattern}_s"]).double()).numpy()
    hidden = (corrected.T[..., None] * spread).sum(0)
    logits = ours("test", None)[0].detach().numpy()
    np.testing.assert_allclose(
        logits, operator @ hidden @ PUBLIC["weight2"] + PUBLIC["bias2"], atol=1e-5, rtol=1e-5
    )
    assert np.abs(logits - PUBLIC[f"{pattern}_logits"]).max() > 0.1


@patterns
def test_expected_relu(pattern):
    """ex_relu, the plain ReLU where the variance is 0: Σ_k γ_k E[ReLU(N(u_k, s_k))] is the public hidden layer."""
    u, s, gamma = (torch.from_numpy(PUBLIC[f"{pattern}_{name}"]) for name in ("u", "s", "gamma"))
    assert (s == 0).any()
    close((gamma[..., None] * expected_relu(u, s)).sum(0), f"{pattern}_hidden")


@patterns
def test_start_of_the_mixture(pattern):
    """init_gmm after np.random.seed: the same fit with the same seed, if it is by the same scikit-learn."""
    if sklearn.__version__ != str(PUBLIC["sklearn"]):
        pytest.skip(f"stored numbers are by scikit-learn {PUBLIC['sklearn']}")
    graph = incomplete(PUBLIC, PUBLIC[f"{pattern}_observed"])
    mixture = fit_mixture(graph, 3, int(PUBLIC["start_seed"]))
    for name in ("log_pi", "mu", "log_sigma2"):
        close(getattr(mixture, name), f"{pattern}_start_{name}", rtol=1e-4)
