"""The expected ReLU of a Gaussian and of a mixture: samples, limits, gradients, and blocks of any size."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from scipy.stats import norm

from pagnn_bench.baselines import gcnmf_relu
from pagnn_bench.baselines.gcnmf_relu import OuterProducts, expected_relu, mixture_relu
from tests.methods.gcnmf_cases import in_full


def test_expected_relu_is_the_mean_of_samples():
    u, s = torch.tensor([-2.0, -0.3, 0.0, 0.7, 3.0]), torch.tensor([1.0, 0.2, 2.0, 0.5, 4.0])
    noise = torch.randn(100_000, 5, generator=torch.Generator().manual_seed(0))
    samples = (u + s.sqrt() * noise).relu()
    error = (samples.mean(0) - expected_relu(u, s)).abs()
    assert (error < 4 * samples.std(0) / 100_000**0.5).all()


def test_expected_relu_without_variance_is_relu():
    u = torch.tensor([-3.0, -1e-6, 0.0, 1e-6, 2.0, 1e4]).requires_grad_()
    s = torch.zeros(6, requires_grad=True)
    out = expected_relu(u, s)
    torch.testing.assert_close(out, u.relu(), atol=1e-9, rtol=0)
    out.sum().backward()
    assert s.grad.tolist() == [0.0] * 6
    assert u.grad.tolist() == [0.0, 0.0, 0.5, 1.0, 1.0, 1.0]


def test_expected_relu_gradient():
    generator = torch.Generator().manual_seed(0)
    u = torch.randn(30, generator=generator, dtype=torch.double).requires_grad_()
    s = (0.1 + torch.rand(30, generator=generator, dtype=torch.double)).requires_grad_()
    # E[ReLU] is homogeneous, so that small variances can be checked in large numbers.
    for scale in (1.0, 1e-3, 1e-8):
        assert torch.autograd.gradcheck(lambda u, s, c=scale: expected_relu(c * u, c * c * s) / c, (u, s))
    # Nearly no variance: dr/du is the step, dr/ds = φ(w) / (2σ).
    u, s = torch.tensor([-1.0, 0.0, 1.0]).requires_grad_(), torch.full((3,), 1e-10).requires_grad_()
    expected_relu(u, s).sum().backward()
    torch.testing.assert_close(u.grad, torch.tensor([0.0, 0.5, 1.0]))
    torch.testing.assert_close(s.grad, torch.tensor([0.0, float(norm.pdf(0)) / 2e-5, 0.0]))


@pytest.mark.parametrize("block", [1, 100, 1 << 16])
@pytest.mark.parametrize(("rows", "masks"), [(7, 1), (12, 4), (14, 4), (3, 3)])
def test_mixture_equals_the_formula_in_full(rows, masks, block, monkeypatch):
    """Values and gradients, whether or not the masks divide the rows and the blocks divide both."""
    monkeypatch.setattr(gcnmf_relu, "BLOCK", block)
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.double)

    base, first, second = draw(2, rows, 5), draw(2, masks, 3, 5), draw(2, masks, 3, 5).abs()
    gamma, shares = draw(2, rows, 3).softmax(2), draw(2, rows).abs()
    shares[:, 1] = 0.0  # a row without missing neighbours
    leaves = [p.requires_grad_() for p in (gamma, base, first, second)]
    outer = OuterProducts(base, F.pad(shares, (0, -rows % masks)), first, second)
    u, s = in_full(outer)
    plain, weights = (gamma[..., None] * expected_relu(u, s)).sum(2), draw(2, rows, 5)
    expected = torch.autograd.grad((plain * weights).sum(), leaves)
    torch.testing.assert_close(mixture_relu(outer, gamma), plain)
    with torch.no_grad():
        torch.testing.assert_close(mixture_relu(outer, gamma), plain)
    out = mixture_relu(outer, gamma)
    for _ in range(2):  # a second backward pass finds what the first one found
        (out * weights).sum().backward(retain_graph=True)
        for leaf, gradient in zip(leaves, expected):
            torch.testing.assert_close(leaf.grad, gradient)
            leaf.grad = None
