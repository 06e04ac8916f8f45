"""Dropout for stacked seeds: one random stream per seed, drawn as packed bits.

torch's dropout draws one uniform number per entry; on a CPU that costs more than the matrix product it precedes
(69 ms for one 2708 x 1433 matrix). Here 64 independent keep-bits come from one random word where the rate is 1/2, and
from a few words for other rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

# Keep probabilities are rounded to multiples of 2^-16; the scale uses the rounded value, so there is no bias.
DIGITS = 16


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
    """By how much each bit of an integer of this kind is moved to become its sign."""
    size = torch.iinfo(kind).bits
    return (size - 1 - torch.arange(size, dtype=kind)).to(device)


@lru_cache(maxsize=16)
def _float_bits(scales: tuple[float, ...], device: torch.device) -> Tensor:
    """These numbers as the bits of float32, int32 [S, 1, 1]; of one number that all share, a scalar."""
    bits = torch.tensor(scales, dtype=torch.float32).view(torch.int32)
    return (bits[0] if len(set(scales)) == 1 else bits[:, None, None]).to(device)


class DropoutStreams:
    """Independent dropout randomness of S stacked seeds.

    A seed's masks depend on its own stream and on the sequence of sizes it asks for, not on who else is in the stack.

    Args:
        seeds: one per member.
        device: where the bits are drawn.
        rates: the dropout rate of every member where members differ in it (a stack of settings); it takes the place of
            the rate that a network asks for, of which then only counts whether it is 0.
    """

    def __init__(
        self, seeds: Sequence[int], device: torch.device, rates: Sequence[float] | None = None
    ) -> None:
        self.device, self.rates = device, None if rates is None else list(rates)
        self.generators = [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def __len__(self) -> int:
        return len(self.generators)

    def select(self, keep: Sequence[int]) -> None:
        """Go on with these members of the stack only."""
        self.generators = [self.generators[k] for k in keep]
        self.rates = None if self.rates is None else [self.rates[k] for k in keep]

    def draw(self, count: int, rate: float) -> KeepBits:
        """Keep-bits for ``count`` entries of every seed at dropout ``rate``, or at the members' own rates."""
        rates = [rate] * len(self) if self.rates is None else self.rates
        packed = torch.empty((len(self), (count + 63) // 64), dtype=torch.int64, device=self.device)
        scales = [1.0] * len(self)
        for own in dict.fromkeys(rates):  # members of one rate together: a few calls for the whole stack
            members = [k for k, value in enumerate(rates) if value == own]
            if own == 0:
                packed[members] = -1
                continue
            digits, keep = keep_digits(1.0 - own)
            packed[members] = self._bits(members, digits, packed.shape[1])
            for k in members:
                scales[k] = 1.0 / keep
        return KeepBits(packed, count, tuple(scales))

    def _bits(self, members: Sequence[int], digits: Sequence[int], width: int) -> Tensor:
        """Words of independent bits that are 1 with the probability of these binary digits, [members, width]."""
        words = torch.empty((len(members), len(digits), width), dtype=torch.int64, device=self.device)
        for k, own in zip(members, words):
            own.random_(-(2**63), None, generator=self.generators[k])
        # From the last digit to the first, r becomes w OR r (digit 1) or w AND r (digit 0), w a fresh random word:
        # each bit of r is then 1 with probability 0.b1 b2 ... bk, independently of all others.
        packed = words[:, -1]
        for k in range(len(digits) - 2, -1, -1):
            packed = words[:, k] | packed if digits[k] else words[:, k] & packed
        return packed


def filled(words: Tensor, out: Tensor | None = None) -> Tensor:
    """Each bit of int32 or int16 [..., words] as an integer whose bits are all like it, [..., words, 32 or 16]."""
    # A bit moved to the sign and back fills its word.
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

    def factors(self, member: int | None = None) -> Tensor:
        """float32 [S, count], or [count] of one member."""
        packed, scales = (
            (self.packed, self.scales) if member is None else (self.packed[member], (self.scales[member],))
        )
        # AND with the scale's own bits leaves the scale or 0.
        factors = filled(packed.view(torch.int32)).bitwise_and_(_float_bits(scales, packed.device))
        return factors.view(torch.float32).flatten(-2)[..., : self.count]

    def masks(self, member: int, kind: torch.dtype) -> Tensor:
        """[count] of one member, int32 or int16: all bits set where an entry is kept, none where it is dropped."""
        return filled(self.packed[member].view(kind)).flatten()[: self.count]


def dropout(values: Tensor, streams: DropoutStreams | None, rate: float) -> Tensor:
    """Dropout on stacked values [S, ...]; the identity without streams (evaluation) or at rate 0."""
    if streams is None or rate == 0:
        return values
    keep = streams.draw(values[0].numel(), rate)
    return values * keep.factors().reshape(values.shape)
