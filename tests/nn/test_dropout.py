"""Packed dropout bits: right frequencies, independent streams, no dependence on the company."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pagnn_bench.nn.dropout import DropoutStreams, dropout, keep_digits

CPU = torch.device("cpu")


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.6, 0.9])
def test_frequency_scale_and_mean(rate):
    factors = DropoutStreams([1], CPU).draw(200_000, rate).factors()[0]
    kept = factors > 0
    sigma = np.sqrt(rate * (1 - rate) / factors.numel())
    assert abs(kept.float().mean().item() - (1 - rate)) < 4 * sigma
    assert factors[kept].unique().numel() == 1
    # Kept probability times scale is 1 exactly: the scale uses the probability as rounded.
    digits, keep = keep_digits(1 - rate)
    assert factors.max().item() * keep == pytest.approx(1, rel=1e-6)
    assert sum(d * 2.0 ** -(k + 1) for k, d in enumerate(digits)) == keep
    assert keep == pytest.approx(1 - rate, abs=2**-16)


@pytest.mark.parametrize("rate", [0.5, 0.3])
def test_bits_are_independent(rate):
    """Every bit position has the right rate, and neighbouring bits are uncorrelated."""
    bits = (DropoutStreams([7], CPU).draw(64 * 4000, rate).factors()[0] > 0).double().view(4000, 64)
    sigma = np.sqrt(rate * (1 - rate) / 4000)
    assert (bits.mean(0) - (1 - rate)).abs().max() < 4.5 * sigma
    correlation = torch.corrcoef(bits.T).fill_diagonal_(0)
    assert correlation.abs().max() < 5 / np.sqrt(4000)


@pytest.mark.parametrize("rate", [0.5, 0.3])
@pytest.mark.parametrize("count", [1, 63, 64, 65, 1000])
def test_factors_are_the_bits_in_order(rate, count):
    """Entry k is bit k of the packed bits, the lowest of the first byte first."""
    keep = DropoutStreams([3, 4], CPU).draw(count, rate)
    bits = np.unpackbits(keep.packed.numpy().view(np.uint8), axis=1, count=count, bitorder="little")
    np.testing.assert_array_equal(keep.factors().numpy(), bits * np.float32(keep.scales[0]))
    np.testing.assert_array_equal(keep.factors(1).numpy(), bits[1] * np.float32(keep.scales[0]))


def test_a_stream_does_not_depend_on_its_company():
    alone = DropoutStreams([5], CPU)
    among = DropoutStreams([4, 5, 6], CPU)
    for count in (10, 1000, 64, 65):
        assert torch.equal(alone.draw(count, 0.5).factors()[0], among.draw(count, 0.5).factors()[1])
    among.select([1])
    assert torch.equal(alone.draw(77, 0.3).factors(), among.draw(77, 0.3).factors())


def test_members_differ_and_draws_differ():
    streams = DropoutStreams([1, 2], CPU)
    first, second = streams.draw(640, 0.5).factors(), streams.draw(640, 0.5).factors()
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first, second)
    assert torch.equal(first[1], DropoutStreams([1, 2], CPU).draw(640, 0.5).factors(1))


def test_dropout_of_stacked_values():
    values = torch.ones(3, 11, 7)
    out = dropout(values, DropoutStreams([1, 2, 3], CPU), 0.5)
    assert out.shape == values.shape
    assert set(out.unique().tolist()) == {0.0, 2.0}
    assert dropout(values, None, 0.5) is values
    assert dropout(values, DropoutStreams([1, 2, 3], CPU), 0.0) is values


@pytest.mark.parametrize("keep", [1e-9, 1 - 1e-9])
def test_a_keep_probability_next_to_the_border_is_the_nearest_that_can_be_drawn(keep):
    assert abs(keep_digits(keep)[1] - keep) < 2**-15


@pytest.mark.parametrize("keep", [0.0, 1.0, -1.0])
def test_impossible_keep_probability(keep):
    with pytest.raises(ValueError, match="inside"):
        keep_digits(keep)


def test_members_of_a_stack_may_have_rates_of_their_own():
    """Each is dropped as if it were alone at its rate; rate 0 keeps everything and draws nothing."""
    rates = [0.5, 0.25, 0.5, 0.0]
    stack = DropoutStreams([1, 2, 3, 4], CPU, rates)
    alone = [DropoutStreams([seed], CPU) for seed in (1, 2, 3)]
    for count in (65, 640):
        keep = stack.draw(count, 0.9)  # the rate that a network asks for does not count
        for member, (own, rate) in enumerate(zip(alone, rates)):
            expected = own.draw(count, rate).factors()[0]
            assert torch.equal(keep.factors()[member], expected)
            assert torch.equal(keep.factors(member), expected)
        assert torch.equal(keep.factors()[3], torch.ones(count))
    stack.select([1, 3])
    assert torch.equal(stack.draw(77, 0.9).factors(0), alone[1].draw(77, 0.25).factors()[0])
