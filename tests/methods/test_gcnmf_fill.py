"""The missing part of GCNmf's first layer: moments of dropout, and only the products that count."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pagnn_bench.baselines import gcnmf_dropped
from pagnn_bench.baselines.gcnmf_dropped import DroppedRows
from pagnn_bench.baselines.gcnmf_fill import CellFill, Components, RowFill
from pagnn_bench.baselines.gcnmf_pairs import Pairs
from pagnn_bench.nn.dropout import DropoutStreams
from tests.methods.gcnmf_cases import CPU, in_full


def test_dealt_masks_have_the_moments_of_entry_wise_dropout():
    """Mean and variance of one hidden unit over many draws; the rows of different masks are independent."""
    share = torch.tensor([[0.5], [1.0], [0.2]])
    fill = RowFill(share, share**2)
    product = torch.randn(1, 40, 2, generator=torch.Generator().manual_seed(0))  # W₁, and μ ⊙ W₁ as well
    ones, gamma, streams = torch.ones(1, 1, 40), torch.ones(1, 3, 1), DropoutStreams([5], CPU)
    components, base = Components(product, ones, ones, gamma), torch.zeros(1, 3, 2)
    draws = [in_full(fill(base, components, streams, 0.4).outer) for _ in range(1500)]
    mean, variance = (torch.stack(values)[:, 0, :, 0] for values in zip(*draws))  # [1500, 3, 2]
    keep = 1 / 0.6
    torch.testing.assert_close(mean.mean(0), share * product[0].sum(0), atol=0.5, rtol=0)
    torch.testing.assert_close(
        mean.var(0), share**2 * (0.4 * keep) * product[0].square().sum(0), atol=0, rtol=0.1
    )
    # A dropped variable is D x: its variance is multiplied by D², whose mean is 1/(1−p), not 1.
    torch.testing.assert_close(
        variance.mean(0), share**2 * keep * product[0].square().sum(0), atol=0, rtol=0.05
    )
    assert abs(np.corrcoef(mean[:, 0, 0], mean[:, 1, 0])[0, 1]) < 0.08


def test_pairs_by_hand():
    """Four rows, three components: of the first seed row 2 needs two components."""
    needed = torch.tensor(
        [
            [[0, 1, 0], [0, 1, 0], [1, 1, 0], [1, 0, 0]],
            [[0, 0, 1], [0, 0, 1], [0, 0, 1], [0, 0, 1]],
        ],
        dtype=torch.bool,
    )
    pairs = Pairs(needed)
    assert pairs.components == [[0, 1], [2]]
    assert [[pairs.rows[group].tolist() for group in own] for own in pairs.groups] == [
        [[2, 3], [0, 1, 2]],
        [[0, 1, 2, 3]],
    ]
    values = torch.arange(9.0)[:, None]
    assert pairs.collect(values)[..., 0].tolist() == [[2.0, 3.0, 4.0, 1.0], [5.0, 6.0, 7.0, 8.0]]
    rows = torch.arange(8.0).view(2, 4, 1).requires_grad_()
    spread = pairs.spread(rows)
    assert spread[:, 0].tolist() == [2.0, 3.0, 0.0, 1.0, 2.0, 4.0, 5.0, 6.0, 7.0]
    spread.sum().backward()
    assert rows.grad[..., 0].tolist() == [[1.0, 1.0, 2.0, 1.0], [1.0, 1.0, 1.0, 1.0]]


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("rows_at_once", [16, 1000])
def test_only_the_pairs_that_count(dropout, rows_at_once, monkeypatch):
    """The plain products of every pair with γ > 0; seeds that agree on a component and seeds that do not."""
    monkeypatch.setattr(gcnmf_dropped, "ENTRIES", rows_at_once * 128)
    generator = torch.Generator().manual_seed(0)
    share, weight = torch.rand(50, 70, generator=generator), torch.randn(4, 70, 3, generator=generator)
    mu, sigma2 = (torch.rand(4, 5, 70, generator=generator) for _ in range(2))
    gamma = (torch.rand(4, 50, 5, generator=generator) < 0.15).float()
    gamma[:3, :, 4] = 1.0  # most seeds need this component for every row
    gamma[3, :, 2] = 1.0
    streams = DropoutStreams([1, 2, 3, 4], CPU, [dropout, 0.5, 0.25, 0.5]) if dropout else None
    base = torch.randn(4, 50, 3, generator=generator)
    fill, components = CellFill(share, share**2), Components(weight, mu, sigma2, gamma)
    _, first, second, pairs = fill(base, components, streams, dropout)
    factors = torch.ones(4, 50, 70)
    if dropout:
        again = DropoutStreams([1, 2, 3, 4], CPU, [dropout, 0.5, 0.25, 0.5])
        factors = again.draw(share.numel(), dropout).factors().view(4, 50, 70)
    plain = base[:, :, None] + torch.einsum("srf,rf,skf,sfh->srkh", factors, share, mu, weight)
    plain2 = torch.einsum("srf,rf,skf,sfh->srkh", factors**2, share**2, sigma2, weight**2)
    assert len(pairs) == int(gamma.sum())
    torch.testing.assert_close(first, plain.flatten(0, 2)[pairs.flat], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(second, plain2.flatten(0, 2)[pairs.flat], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("width", [1, 63, 64, 70, 128, 150])
def test_bits_of_a_row_begin_with_a_word(width):
    rows, keep = DroppedRows(*torch.ones(2, 9, width)), DropoutStreams([3, 4], CPU).draw(9 * width, 0.5)
    index = torch.tensor([4, 0, 8, 7])
    for s in range(2):
        ((part, (b, v)),) = rows.dropped(rows.aligned(keep)[s], index, slice(0, 4))
        assert part == slice(0, 4)
        assert torch.equal(b[:, :width], (keep.factors(s).view(9, width) / 2)[index])
        assert torch.equal(b, v)
        assert not b[:, width:].any()
