"""Rows of GCNmf's matrices with the dropout of a seed, a few at a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from pagnn_bench.nn.dropout import KeepBits, filled

# Entries of each matrix that are copied at once: so few that they are still in the cache when they are multiplied, so
# many that the products are worth a call. A copy of everything takes a half longer, and more where memory is busy.
ENTRIES = 128 * 1536


class DroppedRows:
    """B and V [r, d] with the dropout of each seed, in the order in which the products need them.

    Args:
        share: B = Â(1−M), [r, d].
        share2: V = (Â⊙Â)(1−M), [r, d].

    Attributes:
        matrices: both, side by side in every row and with columns of 0 up to a multiple of 64: [r, 2, D].
        entries: r * d.
    """

    def __init__(self, share: Tensor, share2: Tensor) -> None:
        self.width, self.entries = share.shape[1], share.numel()
        self.matrices = self.padded(torch.stack((share, share2), dim=1))
        self._step = min(max(16, ENTRIES // self.matrices.shape[2]), len(share))

    def to_bfloat16(self) -> None:
        self.matrices = self.matrices.bfloat16()
        self.__dict__.pop("_buffers", None)  # those of the other kind

    def padded(self, values: Tensor) -> Tensor:
        """Values [..., d] with zeros behind them: [..., D]."""
        return F.pad(values, (0, -self.width % 64))

    @cached_property
    def _buffers(self) -> tuple[Tensor, Tensor]:
        """Room for a few rows and their masks, which stays: to allocate it costs as much as to fill it."""
        _, both, width = self.matrices.shape
        rows = self.matrices.new_empty(self._step, both, width)
        kind = self._kind
        size = torch.iinfo(kind).bits
        return rows, torch.empty(self._step, width // size, size, dtype=kind, device=rows.device)

    @property
    def _kind(self) -> torch.dtype:
        """Integers as long as an entry."""
        return torch.int32 if self.matrices.dtype == torch.float32 else torch.int16

    @cached_property
    def _words(self) -> tuple[Tensor, Tensor]:
        """The word in which the bits of each row begin, and those after it, [r, D/64]; at which bit, [r, 1]."""
        rows, _, width = self.matrices.shape
        first = torch.arange(rows, device=self.matrices.device)[:, None] * self.width
        return first // 64 + torch.arange(width // 64, device=first.device), first % 64

    def aligned(self, keep: KeepBits) -> Tensor:
        """Keep-bits of r * d entries, so that those of each row begin with a word: int32 [S, r, D/32]."""
        words, bit = self._words
        last = keep.packed.shape[1] - 1
        low, high = (keep.packed[:, (words + k).clamp_(max=last)] for k in range(2))
        # Without the sign that a shift to the right brings along; by 64 in two steps, as a shift by 64 is none.
        low = (low >> bit).bitwise_and_(~(torch.full_like(bit, -2) << (63 - bit)))
        return low.bitwise_or_((high << (63 - bit)) << 1).view(torch.int32)

    def dropped(
        self, bits: Tensor | None, index: Tensor, group: slice
    ) -> Iterator[tuple[slice, tuple[Tensor, Tensor]]]:
        """The rows ``index[group]`` of both matrices, [few, D] each, and which of the group they are.

        Where a bit (int32 [r, D/32]) is not set there is 0. Valid until the next.
        """
        rows, masks = self._buffers
        for start in range(group.start, group.stop, self._step):
            part = slice(start, min(start + self._step, group.stop))
            few, size = index[part], part.stop - part.start
            torch.index_select(self.matrices, 0, few, out=rows[:size])
            if bits is not None:
                mask = filled(bits.index_select(0, few).view(self._kind), masks[:size]).view(size, 1, -1)
                rows[:size].view(self._kind).bitwise_and_(mask)
            yield part, (rows[:size, 0], rows[:size, 1])
