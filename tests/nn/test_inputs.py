"""All forms of the first layer compute the same product and gradient as the plain dense formula."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from pagnn_bench.nn import dropout, inputs
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.inputs import DenseInput, DropoutFirstInput, SparseInput, make_input
from pagnn_bench.nn.network import neighbourhood
from pagnn_bench.nn.sparse import SparseOperator

CPU = torch.device("cpu")
SEEDS = [3, 4, 5]


@pytest.fixture
def matrix() -> np.ndarray:
    rng = np.random.default_rng(0)
    dense = rng.random((9, 13)).astype(np.float32) * (rng.random((9, 13)) < 0.3)
    dense[4] = 0  # an empty row
    dense[:, 6] = 0  # an empty column
    return dense


@pytest.fixture
def weight() -> torch.Tensor:
    return torch.randn(3, 13, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()


def gradient_of(out: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    pattern = torch.arange(out.numel(), dtype=out.dtype).view_as(out).cos()
    return torch.autograd.grad((out * pattern).sum(), weight)[0]


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("rate", [0.0, 0.5, 0.3])
@pytest.mark.parametrize("form", ["sparse", "dense"])
def test_product_and_gradient(matrix, weight, form, rate, members):
    own = weight[:members]
    source = SparseInput(sp.csr_array(matrix), CPU) if form == "sparse" else DenseInput(matrix, CPU)
    out = source(own, DropoutStreams(SEEDS[:members], CPU), rate)

    # The same bits laid out densely by the plain rule: sparse forms draw one bit per stored entry, in row order.
    dense = torch.from_numpy(matrix)
    factors = torch.ones(members, *dense.shape)
    if rate:
        streams = DropoutStreams(SEEDS[:members], CPU)
        if form == "dense":
            factors = streams.draw(dense.numel(), rate).factors().view(members, *dense.shape)
        else:
            factors[:, dense != 0] = streams.draw(int((dense != 0).sum()), rate).factors()
    expected = torch.bmm(dense * factors, own)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(gradient_of(out, weight), gradient_of(expected, weight))


@pytest.mark.parametrize("entries", [1, 2 * 9 * 13, 1 << 28])
def test_dense_copies_in_blocks_and_over_epochs(matrix, weight, entries, monkeypatch):
    monkeypatch.setattr(inputs, "DROPPED_ENTRIES", entries)
    source, dense = DenseInput(matrix, CPU), torch.from_numpy(matrix)
    ours, plain = DropoutStreams(SEEDS, CPU), DropoutStreams(SEEDS, CPU)
    for members in (3, 3, 2, 1):  # two epochs of the whole stack, then seeds stop
        ours.select(range(members))
        plain.select(range(members))
        own = weight[:members]
        expected = torch.bmm(dense * plain.draw(dense.numel(), 0.5).factors().view(members, 9, 13), own)
        out = source(own, ours, 0.5)
        torch.testing.assert_close(out, expected)
        torch.testing.assert_close(gradient_of(out, weight), gradient_of(expected, weight))


@pytest.mark.parametrize("form", ["sparse", "dense"])
def test_evaluation_has_no_dropout(matrix, weight, form):
    source = SparseInput(sp.csr_array(matrix), CPU) if form == "sparse" else DenseInput(matrix, CPU)
    torch.testing.assert_close(source(weight, None, 0.5), torch.from_numpy(matrix) @ weight)


def test_a_stack_may_shrink_and_grow(matrix, weight):
    source = SparseInput(sp.csr_array(matrix), CPU)
    for members in (1, 3, 2):
        expected = torch.from_numpy(matrix) @ weight[:members]
        torch.testing.assert_close(source(weight[:members], None, 0.5), expected)
        torch.testing.assert_close(
            source(weight[:members], DropoutStreams(SEEDS[:members], CPU), 0.0), expected
        )


def test_the_form_follows_the_density(matrix):
    assert isinstance(make_input(sp.csr_array(matrix), CPU), SparseInput)
    assert isinstance(make_input(sp.csr_array(np.ones((3, 3))), CPU), DenseInput)
    assert isinstance(make_input(matrix, CPU), DenseInput)


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_dropout_before_aggregation(matrix, weight, rate):
    operator = sp.csr_array(np.random.default_rng(1).random((5, 9)) * (np.eye(9)[:5] + np.eye(9)[4:]))
    correction = np.random.default_rng(2).random((5, 13))
    source = DropoutFirstInput(operator, sp.csr_array(matrix), correction, CPU)
    out = source(weight, DropoutStreams(SEEDS, CPU), rate)
    features = torch.from_numpy(matrix).expand(3, -1, -1)
    if rate:
        factors = DropoutStreams(SEEDS, CPU).draw(matrix.size, rate).factors()
        features = features * factors.view(3, *matrix.shape)
    aggregated = (
        torch.from_numpy(operator.toarray()).float() @ features * torch.from_numpy(correction).float()
    )
    expected = torch.bmm(aggregated, weight)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(gradient_of(out, weight), gradient_of(expected, weight))


def test_operator_on_a_stack_and_its_gradient():
    matrix = sp.random_array((6, 8), density=0.4, rng=np.random.default_rng(0), format="csr")
    stacked = torch.randn(3, 8, 4, generator=torch.Generator().manual_seed(1)).requires_grad_()
    out = SparseOperator(matrix, CPU)(stacked)
    expected = torch.from_numpy(matrix.toarray()).float() @ stacked
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(gradient_of(out, stacked), gradient_of(expected, stacked))


def test_neighbourhood_is_exact():
    matrix = sp.random_array((20, 20), density=0.1, rng=np.random.default_rng(0), format="csr")
    hidden = np.random.default_rng(1).random((20, 3))
    nodes = np.array([3, 7, 7, 19])
    operator, columns = neighbourhood(matrix, nodes)
    np.testing.assert_allclose(operator @ hidden[columns], (matrix @ hidden)[nodes])


@pytest.mark.parametrize("rates", [None, [0.5, 0.25]])
def test_bfloat16_has_the_same_masks_and_nearly_the_same_products(rates):
    """Forward and backward within 8 significant bits of float32, also with dropout rates of the members' own."""
    generator = torch.Generator().manual_seed(0)
    matrix = torch.rand(30, 21, generator=generator).numpy()
    weight, upper = (torch.randn(2, n, 4, generator=generator) for n in (21, 30))
    found = []
    for narrow in (False, True):
        source, own = DenseInput(matrix, CPU), weight.clone().requires_grad_()
        if narrow:
            source.to_bfloat16()
        for streams in (DropoutStreams([1, 2], CPU, rates), None):
            out = source(own, streams, 0.5)
            assert out.dtype == torch.float32
            (gradient,) = torch.autograd.grad((out * upper).sum(), own)
            found.append((out.detach(), gradient))
    for plain, narrow in zip(found[:2], found[2:]):
        for one, other in zip(plain, narrow):
            assert other.dtype == torch.float32
            assert not torch.equal(one, other)
            assert (one - other).norm() < 0.01 * one.norm()


@pytest.mark.parametrize("masked", [64, 1 << 17])
@pytest.mark.parametrize("rates", [None, [0.5, 0.25, 0.5]])
def test_a_dense_input_has_the_digits_of_the_plain_products(masked, rates, monkeypatch):
    """G times the factors, entry by entry, then the products: forward and backward to the last bit."""
    monkeypatch.setattr(dropout, "MASK_ENTRIES", masked)
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(70, 33, generator=generator)
    weight, upper = (torch.randn(3, n, 16, generator=generator) for n in (33, 70))
    own = weight.clone().requires_grad_()
    out = DenseInput(matrix.numpy(), CPU)(own, DropoutStreams(SEEDS, CPU, rates), 0.5)
    (gradient,) = torch.autograd.grad(out, own, upper)
    factors = DropoutStreams(SEEDS, CPU, rates).draw(matrix.numel(), 0.5).factors()
    dropped = matrix * factors.view(3, *matrix.shape)
    assert torch.equal(out, torch.bmm(dropped, weight))
    assert torch.equal(gradient, torch.bmm(dropped.mT, upper))
    assert gradient.is_contiguous()
