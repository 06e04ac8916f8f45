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
def _shifts_and_scale(scale: float, device: torch.device) -> tuple[Tensor, Tensor]:
    """By how much each bit of a 32-bit word is moved to become its sign, and ``scale`` as the bits of a float32."""
    shifts = 31 - torch.arange(32, dtype=torch.int32)
    pattern = torch.tensor(scale, dtype=torch.float32).view(torch.int32)
    return shifts.to(device), pattern.to(device)


class DropoutStreams:
    """Independent dropout randomness of S stacked seeds.

    A seed's masks depend on its own stream and on the sequence of sizes it asks for, not on who else is in the stack.
    """

    def __init__(self, seeds: Sequence[int], device: torch.device) -> None:
        self.device = device
        self.generators = [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def __len__(self) -> int:
        return len(self.generators)

    def select(self, keep: Sequence[int]) -> None:
        """Go on with these members of the stack only."""
        self.generators = [self.generators[k] for k in keep]

    def draw(self, count: int, rate: float) -> KeepBits:
        """Keep-bits for ``count`` entries of every seed at dropout ``rate``."""
        digits, keep = keep_digits(1.0 - rate)
        words = torch.empty(
            (len(self), len(digits), (count + 63) // 64), dtype=torch.int64, device=self.device
        )
        for generator, own in zip(self.generators, words):
            own.random_(-(2**63), None, generator=generator)
        # From the last digit to the first, r becomes w OR r (digit 1) or w AND r (digit 0), w a fresh random word:
        # each bit of r is then 1 with probability 0.b1 b2 ... bk, independently of all others.
        packed = words[:, -1]
        for k in range(len(digits) - 2, -1, -1):
            packed = words[:, k] | packed if digits[k] else words[:, k] & packed
        return KeepBits(packed.contiguous(), count, 1.0 / keep)


class KeepBits:
    """Packed keep-bits of S seeds for ``count`` entries each; expanded to factors 0 or 1/(1 - rate) on demand."""

    def __init__(self, packed: Tensor, count: int, scale: float) -> None:
        self.packed, self.count, self.scale = packed, count, scale

    def factors(self, member: int | None = None) -> Tensor:
        """float32 [S, count], or [count] of one member."""
        packed = self.packed if member is None else self.packed[member]
        shifts, scale = _shifts_and_scale(self.scale, packed.device)
        # A bit moved to the sign and back fills its word: AND with the scale's own bits leaves the scale or 0.
        filled = (packed.view(torch.int32)[..., None] << shifts).bitwise_right_shift_(31)
        return filled.bitwise_and_(scale).view(torch.float32).flatten(-2)[..., : self.count]


def dropout(values: Tensor, streams: DropoutStreams | None, rate: float) -> Tensor:
    """Dropout on stacked values [S, ...]; the identity without streams (evaluation) or at rate 0."""
    if streams is None or rate == 0:
        return values
    keep = streams.draw(values[0].numel(), rate)
    return values * keep.factors().reshape(values.shape)
