"""Dropout for stacked seeds: one random stream per seed, drawn as packed bits.

torch's dropout draws one uniform number per entry; on a CPU that costs more than the matrix product it precedes
(69 ms for one 2708 x 1433 matrix). Here 64 independent keep-bits come from one random word where the rate is 1/2, and
from a few words for other rates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from pagnn_bench.nn.ahead import Ahead

# Where the bits are drawn: by generators on the CPU, which give the same bits for every device, or on the device.
RNGS = ("host", "device")
HOST = torch.device("cpu")

# Keep probabilities are rounded to multiples of 2^-16; the scale uses the rounded value, so there is no bias.
DIGITS = 16

# Entries whose masks are made at once: few enough to stay in the processor's cache, enough to be worth the calls.
MASK_ENTRIES = 1 << 17


def keep_digits(keep: float) -> tuple[list[int], float]:
    """Binary digits 0.b1 b2 ... bk (trailing zeros cut) of a keep probability, and the value they stand for."""
    if not 0 < keep < 1:
        raise ValueError(f"keep probability {keep} must lie inside (0, 1)")
    numerator = min(max(round(keep * 2**DIGITS), 1), 2**DIGITS - 1)
    digits = [(numerator >> (DIGITS - 1 - k)) & 1 for k in range(DIGITS)]
    while digits[-1] == 0:
        digits.pop()
    return digits, numerator / 2**DIGITS


@lru_cache(maxsize=16)
def _shifts(kind: torch.dtype, device: torch.device) -> Tensor:
    """By how much to shift each bit of an integer of this kind to make it the sign."""
    size = torch.iinfo(kind).bits
    return (size - 1 - torch.arange(size, dtype=kind)).to(device, non_blocking=True)


@lru_cache(maxsize=16)
def _float_bits(scales: tuple[float, ...], device: torch.device) -> Tensor:
    """The float32 bits of these numbers, int32 [S, 1, 1]; a scalar if all are equal."""
    bits = torch.tensor(scales, dtype=torch.float32).view(torch.int32)
    return (bits[0] if len(set(scales)) == 1 else bits[:, None, None]).to(device, non_blocking=True)


class _Request(NamedTuple):
    """Keep-bits for ``entries`` entries of every member, at its own rate."""

    entries: int
    rates: tuple[float, ...]


class DropoutStreams:
    """Independent dropout randomness of S stacked seeds.

    A seed's masks depend on its own stream and on the sequence of sizes it requests, not on the rest of the stack, and
    not on the device: other devices get their bits from the host (:class:`~pagnn_bench.nn.ahead.Ahead`).

    Args:
        seeds: one per member.
        device: where the bits are needed.
        rates: the dropout rate of every member if they differ (a stack of settings); it replaces the rate that a
            network requests, unless that is 0.
        rng: ``host``, or ``device`` for bits that the device draws itself, which is faster but gives other bits.
    """

    def __init__(
        self,
        seeds: Sequence[int],
        device: torch.device,
        rates: Sequence[float] | None = None,
        rng: str = "host",
    ) -> None:
        self.device, self.rates = device, None if rates is None else list(rates)
        self._home = device if rng == "device" else HOST
        self.generators = [torch.Generator(self._home).manual_seed(seed) for seed in seeds]
        # Single numbers are always drawn on the host, which would have to wait for those of a device.
        self._hosts = (
            self.generators
            if self._home.type == "cpu"
            else [torch.Generator().manual_seed(seed) for seed in seeds]
        )
        self._ahead = self._make_ahead()

    def _make_ahead(self) -> Ahead[_Request] | None:
        if self._home.type == self.device.type:
            return None
        return Ahead(self._packed, self.generators, self.device)

    def __len__(self) -> int:
        return len(self.generators)

    def select(self, keep: Sequence[int]) -> None:
        """Continue with only these members of the stack."""
        if self._ahead is not None:
            self._ahead.take_back()
        self.generators, self._hosts = ([own[k] for k in keep] for own in (self.generators, self._hosts))
        self.rates = None if self.rates is None else [self.rates[k] for k in keep]
        self._ahead = self._make_ahead()

    def seed(self, member: int) -> int:
        """A number from a member's stream, to seed another generator."""
        if self._ahead is not None:
            self._ahead.take_back()
        return int(torch.randint(2**62, (), generator=self._hosts[member]))

    def draw(self, count: int, rate: float) -> KeepBits:
        """Keep-bits for ``count`` entries of every seed at dropout ``rate``, or at the members' own rates."""
        request = _Request(count, tuple([rate] * len(self) if self.rates is None else self.rates))
        packed = self._packed(request) if self._ahead is None else self._ahead.take(request)
        scales = {own: 1.0 / keep_digits(1.0 - own)[1] if own else 1.0 for own in set(request.rates)}
        return KeepBits(packed, count, tuple(scales[own] for own in request.rates))

    def _packed(self, request: _Request) -> Tensor:
        """int64 [S, words], on the device of the generators."""
        width = (request.entries + 63) // 64
        packed = torch.empty((len(self), width), dtype=torch.int64, device=self._home)
        # Members with the same rate together: a few calls for the whole stack.
        for rate in dict.fromkeys(request.rates):
            members = [k for k, own in enumerate(request.rates) if own == rate]
            place: slice | list[int] = slice(None) if len(members) == len(self) else members
            packed[place] = -1 if rate == 0 else self._bits(members, keep_digits(1.0 - rate)[0], width)
        return packed

    def _bits(self, members: Sequence[int], digits: Sequence[int], width: int) -> Tensor:
        """Words of independent bits that are 1 with the probability of these binary digits, [members, width]."""
        words = torch.empty((len(members), len(digits), width), dtype=torch.int64, device=self._home)
        for k, own in zip(members, words):
            own.random_(-(2**63), None, generator=self.generators[k])
        # From the last digit to the first, r becomes w OR r (digit 1) or w AND r (digit 0), w a fresh random word:
        # each bit of r is then 1 with probability 0.b1 b2 ... bk, independently of all others.
        packed = words[:, -1]
        for k in range(len(digits) - 2, -1, -1):
            packed = words[:, k] | packed if digits[k] else words[:, k] & packed
        return packed


def filled(words: Tensor, out: Tensor | None = None) -> Tensor:
    """Each bit of int32 or int16 [..., words] as an integer with all bits equal to it, [..., words, 32 or 16]."""
    # A bit shifted to the sign and back fills its word.
    shifts = _shifts(words.dtype, words.device)
    return torch.bitwise_left_shift(words[..., None], shifts, out=out).bitwise_right_shift_(len(shifts) - 1)


class KeepBits:
    """Packed keep-bits of S seeds for ``count`` entries each; expanded to factors 0 or 1/(1 - rate) on demand.

    Attributes:
        packed: int64 [S, words].
        scales: 1/(1 - rate) of every member.
    """

    def __init__(self, packed: Tensor, count: int, scales: tuple[float, ...]) -> None:
        self.packed, self.count, self.scales = packed, count, scales

    @property
    def scale(self) -> Tensor:
        """The scales, on the device of the bits, to multiply [S, ..., ...] with."""
        return _float_bits(self.scales, self.packed.device).view(torch.float32)

    def factors(self, member: int | None = None) -> Tensor:
        """float32 [S, count], or [count] for one member."""
        packed, scales = (
            (self.packed, self.scales) if member is None else (self.packed[member], (self.scales[member],))
        )
        # AND with the scale's own bits leaves the scale or 0.
        factors = filled(packed.view(torch.int32)).bitwise_and_(_float_bits(scales, packed.device))
        return factors.view(torch.float32).flatten(-2)[..., : self.count]

    def masks(self, member: int, kind: torch.dtype) -> Iterator[tuple[slice, Tensor]]:
        """For one member, int32 or int16 with all bits set where an entry is kept, none where it is dropped.

        Yields (which of the ``count`` entries, masks), MASK_ENTRIES at a time; masks are valid until the next.
        """
        words, size = self.packed[member].view(kind), torch.iinfo(kind).bits
        masks = torch.empty(min(len(words), MASK_ENTRIES // size), size, dtype=kind, device=words.device)
        for first, chunk in zip(range(0, self.count, MASK_ENTRIES), words.split(MASK_ENTRIES // size)):
            part = slice(first, min(first + MASK_ENTRIES, self.count))
            yield part, filled(chunk, masks[: len(chunk)]).flatten()[: part.stop - first]


def dropout(values: Tensor, streams: DropoutStreams | None, rate: float) -> Tensor:
    """Dropout on stacked values [S, ...]; the identity without streams (evaluation) or at rate 0."""
    if streams is None or rate == 0:
        return values
    keep = streams.draw(values[0].numel(), rate)
    return values * keep.factors().reshape(values.shape)
