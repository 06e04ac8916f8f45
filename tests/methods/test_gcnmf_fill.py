"""The missing part of GCNmf's first layer: moments of dropout, and only the products that count."""

from __future__ import annotations

import numpy as np
import torch

from pagnn_bench.baselines.gcnmf_fill import CellFill, Components, RowFill, pairs_that_count
from pagnn_bench.nn.dropout import DropoutStreams

CPU = torch.device("cpu")


def test_dealt_masks_have_the_moments_of_entry_wise_dropout():
    """Mean and variance of one hidden unit over many draws; the rows of different masks are independent."""
    share = torch.tensor([[0.5], [1.0], [0.2]])
    fill = RowFill(share, share**2)
    product = torch.randn(1, 40, 2, generator=torch.Generator().manual_seed(0))  # W₁, and μ ⊙ W₁ as well
    ones, gamma, streams = torch.ones(1, 1, 40), torch.ones(1, 3, 1), DropoutStreams([5], CPU)
    draws = [fill(Components(product, ones, ones, gamma), streams, 0.4) for _ in range(1500)]
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


def test_pairs_that_count_by_hand():
    """Four rows, three components: of the first seed component 1 has most rows, and row 2 needs two components."""
    needed = torch.tensor(
        [
            [[0, 1, 0], [0, 1, 0], [1, 1, 0], [1, 0, 0]],
            [[0, 0, 1], [0, 0, 1], [0, 0, 1], [0, 0, 1]],
        ],
        dtype=torch.bool,
    )
    first, second = pairs_that_count(needed)
    assert [(k, None if rows is None else rows.tolist()) for k, rows in first] == [(1, None), (0, [2, 3])]
    assert second == [(2, None)]


def test_products_of_pairs_that_do_not_count_are_left_out():
    """Where γ > 0 stand the plain products; where it is 0 only the component with most rows has them."""
    generator = torch.Generator().manual_seed(0)
    share, weight = torch.rand(6, 5, generator=generator), torch.randn(2, 5, 3, generator=generator)
    mu, sigma2 = (torch.rand(2, 4, 5, generator=generator) for _ in range(2))
    gamma = torch.nn.functional.one_hot(torch.tensor([[0, 0, 0, 1, 1, 3], [2, 2, 2, 2, 2, 2]]), 4).float()
    first, second = CellFill(share, share**2)(Components(weight, mu, sigma2, gamma), None, 0.5)
    plain = torch.einsum("rf,skf,sfh->srkh", share, mu, weight)
    plain2 = torch.einsum("rf,skf,sfh->srkh", share**2, sigma2, weight**2)
    there = gamma > 0
    there[0, :, 0] = True
    torch.testing.assert_close(first, plain * there[..., None])
    torch.testing.assert_close(second, plain2 * there[..., None])
