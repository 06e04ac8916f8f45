"""Rows of GCNmf's matrices with the dropout of one seed, a few at a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from pagnn_bench.nn.dropout import KeepBits, filled

# Entries of each matrix that are copied at once: few enough to stay in the cache until they are multiplied, enough for
# the products to be worth a call. Copying everything at once takes half as long again, and more if memory is busy.
ENTRIES = 128 * 1536


class DroppedRows:
    """B and V [r, d] with the dropout of each seed, in the order in which the products need them.

    Args:
        share: B = Â(1−M), [r, d].
        share2: V = (Â⊙Â)(1−M), [r, d].

    Attributes:
        matrices: both, side by side in every row, padded with columns of 0 to a multiple of 64: [r, 2, D].
        entries: r * d.
    """

    def __init__(self, share: Tensor, share2: Tensor) -> None:
        self.width, self.entries = share.shape[1], share.numel()
        self.matrices = self.padded(torch.stack((share, share2), dim=1))
        self._step = min(max(16, ENTRIES // self.matrices.shape[2]), len(share))

    def to_bfloat16(self) -> None:
        self.matrices = self.matrices.bfloat16()
        self.__dict__.pop("_buffers", None)  # drops float32 buffers

    def padded(self, values: Tensor) -> Tensor:
        """Values [..., d] padded with zeros: [..., D]."""
        return F.pad(values, (0, -self.width % 64))

    @cached_property
    def _buffers(self) -> tuple[Tensor, Tensor]:
        """Buffers for a few rows and their masks, which are kept: allocating them costs as much as filling them."""
        _, both, width = self.matrices.shape
        rows = self.matrices.new_empty(self._step, both, width)
        kind = self._kind
        size = torch.iinfo(kind).bits
        return rows, torch.empty(self._step, width // size, size, dtype=kind, device=rows.device)

    @property
    def _kind(self) -> torch.dtype:
        """Integers of the size of an entry."""
        return torch.int32 if self.matrices.dtype == torch.float32 else torch.int16

    @cached_property
    def _words(self) -> tuple[Tensor, Tensor]:
        """The words with the bits of each row, [r, D/64], and the first bit of the row in its first word, [r, 1]."""
        rows, _, width = self.matrices.shape
        first = torch.arange(rows, device=self.matrices.device)[:, None] * self.width
        return first // 64 + torch.arange(width // 64, device=first.device), first % 64

    def aligned(self, keep: KeepBits) -> Tensor:
        """Keep-bits of r * d entries, shifted so that each row starts at a word: int32 [S, r, D/32]."""
        words, bit = self._words
        last = keep.packed.shape[1] - 1
        low, high = (keep.packed[:, (words + k).clamp_(max=last)] for k in range(2))
        # Clear the sign bits that a right shift brings in; shift left in two steps, as a shift by 64 does nothing.
        low = (low >> bit).bitwise_and_(~(torch.full_like(bit, -2) << (63 - bit)))
        return low.bitwise_or_((high << (63 - bit)) << 1).view(torch.int32)

    def dropped(
        self, bits: Tensor | None, index: Tensor, group: slice
    ) -> Iterator[tuple[slice, tuple[Tensor, Tensor]]]:
        """The rows ``index[group]`` of both matrices, [rows, D] each, in chunks: yields (which of the group, rows).

        Entries are 0 where their bit (int32 [r, D/32]) is not set. Rows are valid until the next chunk.
        """
        rows, masks = self._buffers
        for start in range(group.start, group.stop, self._step):
            part = slice(start, min(start + self._step, group.stop))
            chunk, size = index[part], part.stop - part.start
            torch.index_select(self.matrices, 0, chunk, out=rows[:size])
            if bits is not None:
                mask = filled(bits.index_select(0, chunk).view(self._kind), masks[:size]).view(size, 1, -1)
                rows[:size].view(self._kind).bitwise_and_(mask)
            yield part, (rows[:size, 0], rows[:size, 1])
