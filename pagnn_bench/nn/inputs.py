"""The first linear layer of a stack of seeds: G W with a fixed G and separate dropout for every seed.

G (aggregated or imputed features) has no parameters and needs no gradient, so it is computed once per mask and only
its rows in the neighbourhood of the relevant nodes are kept. Three forms, one interface::

    input(weight [S, d, h], streams, rate) -> [S, r, h]
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from pagnn_bench.nn.dropout import DropoutStreams, KeepBits
from pagnn_bench.nn.sparse import BlockPattern, csr_tensor

# A sparse product does about a fifth of the multiply-adds per second of a dense one, and dropout costs time per stored
# entry: the two break even near this density (measured on two cores).
DENSE_FROM = 0.3

# Copies of a dense G with dropout are made for as many seeds at once as fit into this many entries (1 GB).
DROPPED_ENTRIES = 1 << 28


class Input(Protocol):
    """The input of a network, multiplied with its first weights."""

    def __call__(self, weight: Tensor, streams: DropoutStreams | None, rate: float) -> Tensor: ...


def make_input(rows: sp.csr_array | np.ndarray, device: torch.device) -> Input:
    """The faster form for this matrix [r, d]."""
    if isinstance(rows, np.ndarray):
        return DenseInput(rows, device)
    if rows.nnz > DENSE_FROM * np.prod(rows.shape):
        return DenseInput(rows.toarray(), device)
    return SparseInput(rows, device)


class _BlockProduct(torch.autograd.Function):
    """[S, nnz] values in a shared pattern times [S, d, h]; gradient for the weights only."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, values: Tensor, source: SparseInput) -> Tensor:
        ctx.source, ctx.values = source, values
        members, _, width = weight.shape
        return (source.pattern.build(values) @ weight.reshape(-1, width)).view(members, -1, width)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        source, grad = ctx.source, grads[0].contiguous()
        members, _, width = grad.shape
        transposed = source.transpose.build(ctx.values.index_select(1, source.order))
        return (transposed @ grad.view(-1, width)).view(members, -1, width), None, None


class SparseInput:
    """G as CSR [r, d]; every seed has its own dropout on the stored entries (a dropped zero is a zero)."""

    def __init__(self, rows: sp.csr_array, device: torch.device) -> None:
        self._rows = sp.csr_array(rows, copy=True)
        self._rows.sum_duplicates()
        self.matrix = csr_tensor(self._rows, device)
        self.values = self.matrix.values()

    @cached_property
    def pattern(self) -> BlockPattern:
        return BlockPattern(self._rows, self.values.device)

    @cached_property
    def order(self) -> Tensor:
        """The position in G of each entry of its transpose, so that both share one array of values."""
        return torch.from_numpy(self._transposed.data.astype(np.int32)).to(self.values.device)

    @cached_property
    def transpose(self) -> BlockPattern:
        return BlockPattern(self._transposed, self.values.device)

    @cached_property
    def _transposed(self) -> sp.csr_array:
        rows = self._rows
        position = sp.csr_array((np.arange(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)
        return sp.csr_array(position.T)

    def __call__(self, weight: Tensor, streams: DropoutStreams | None, rate: float) -> Tensor:
        if streams is None:
            # Evaluation: all seeds share one G, and no gradient is needed, hence no transpose.
            return shared_product(self.matrix, weight)
        values = self.values.expand(len(weight), -1)
        if rate > 0:
            values = values * streams.draw(self.values.numel(), rate).factors()
        return _BlockProduct.apply(weight, values, self)


def shared_product(matrix: Tensor, weight: Tensor) -> Tensor:
    """One G [r, d] times the weights [S, d, h] of all members, folded into the width: [S, r, h]."""
    members, depth, width = weight.shape
    folded = weight.transpose(0, 1).reshape(depth, members * width)
    return (matrix @ folded).view(-1, members, width).transpose(0, 1)


class _DenseProduct(torch.autograd.Function):
    """Dense G with per-seed keep-bits times [S, d, h]; gradient for the weights only."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, keep: KeepBits, source: DenseInput) -> Tensor:
        ctx.keep, ctx.source = keep, source
        weight, blocks = source.narrow(weight, keep), source.blocks(len(weight))
        return torch.cat([torch.bmm(source.dropped(keep, block), weight[block]) for block in blocks]).float()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        keep, source = ctx.keep, ctx.source
        grad, blocks = source.narrow(grads[0], keep), source.blocks(len(grads[0]))
        # (Cᵀ U)ᵀ equals Uᵀ C to the last digit but takes little more than half the time, reading C row by row.
        transposed = grad.mT.contiguous()
        parts = [torch.bmm(transposed[block], source.dropped(keep, block)).mT for block in blocks]
        return torch.cat(parts).float().contiguous(), None, None


class DenseInput:
    """G as a dense matrix [r, d].

    In bfloat16 (:meth:`to_bfloat16`) G, its copies and what they are multiplied with have 8 significant bits; a product
    sums in float32 and rounds its result to bfloat16 once; weights and gradients are float32 again.

    Copies of G with the dropout of each seed go into a buffer that is kept: allocating it in every epoch costs as much
    as the products. If all copies fit, the backward pass finds them there, which saves a quarter of the time.
    """

    def __init__(self, rows: np.ndarray, device: torch.device) -> None:
        self.matrix = torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32)).to(device)
        self._buffer = self.matrix.new_empty(0)
        # The bits behind the copies in the buffer, and their first member.
        self._buffered: tuple[KeepBits, int] | None = None
        # The last scale, and G times this scale.
        self._last_scaled: tuple[float, Tensor] | None = None

    def __call__(self, weight: Tensor, streams: DropoutStreams | None, rate: float) -> Tensor:
        if streams is None or rate == 0:
            return shared_product(self.matrix, weight.to(self.matrix.dtype)).float()
        return self.product(weight, streams.draw(self.matrix.numel(), rate))

    def product(self, weight: Tensor, keep: KeepBits) -> Tensor:
        """The product with only these entries of G kept."""
        return _DenseProduct.apply(weight, keep, self)

    def to_bfloat16(self) -> None:
        self.matrix = self.matrix.bfloat16()
        self._buffer, self._buffered = self.matrix.new_empty(0), None

    def narrow(self, values: Tensor, keep: KeepBits) -> Tensor:
        """The other factor of a product, [S, ..., h]: as it is, or in bfloat16 with the scales that the copies lack."""
        if self.matrix.dtype == torch.float32:
            return values
        return (values * keep.scale).bfloat16()

    def blocks(self, members: int) -> list[slice]:
        """The members of a stack, in parts that fit into the buffer."""
        step = max(1, DROPPED_ENTRIES // max(1, self.matrix.numel()))
        return [slice(first, min(first + step, members)) for first in range(0, members, step)]

    def dropped(self, keep: KeepBits, block: slice) -> Tensor:
        """G with the dropout of these members, [block, r, d]; valid until the next call."""
        count, size = block.stop - block.start, self.matrix.numel()
        if self._buffer.numel() < count * size:
            self._buffer = self.matrix.new_empty(count * size)
        copies = self._buffer[: count * size].view(count, *self.matrix.shape)
        if self._buffered is None or self._buffered[0] is not keep or self._buffered[1] != block.start:
            # Members with the same scale in a row, because only the last scaled G is kept.
            for member in sorted(range(block.start, block.stop), key=keep.scales.__getitem__):
                self._drop(keep, member, copies[member - block.start])
            self._buffered = (keep, block.start)
        return copies

    def _drop(self, keep: KeepBits, member: int, copy: Tensor) -> None:
        """Write G times the factors of a member: the bits of the scaled G, masked by what is kept."""
        kind = torch.int32 if self.matrix.dtype == torch.float32 else torch.int16
        scaled = self._scaled(keep.scales[member]).view(kind).flatten()
        dropped = copy.view(kind).flatten()
        for part, masks in keep.masks(member, kind):
            torch.bitwise_and(scaled[part], masks, out=dropped[part])

    def _scaled(self, scale: float) -> Tensor:
        """G times the scale of a member; in bfloat16 plain G, since the other factor has the scale."""
        if self.matrix.dtype != torch.float32:
            return self.matrix
        if self._last_scaled is None or self._last_scaled[0] != scale:
            self._last_scaled = (scale, self.matrix * scale)
        return self._last_scaled[1]


class DropoutFirstInput:
    """Dropout on the features *before* they are aggregated: G = (Q drop(X)) ⊙ C, drawn for every seed and epoch.

    This is the order of the authors' later code; a dropped entry counts as an observed zero (C stays as it is). It is
    several times slower than dropout on G, which needs no aggregation in the loop.

    Args:
        operator: Q, CSR [r, k], the aggregation without the per-entry division.
        features: X, CSR or dense [k, d].
        correction: C, dense [r, d] or [r, 1].
    """

    def __init__(
        self,
        operator: sp.csr_array,
        features: sp.csr_array | np.ndarray,
        correction: np.ndarray,
        device: torch.device,
    ) -> None:
        dense = features if isinstance(features, np.ndarray) else features.toarray()
        self.operator = csr_tensor(operator, device)
        self.features = torch.from_numpy(np.ascontiguousarray(dense, dtype=np.float32)).to(device)
        self.correction = torch.from_numpy(correction.astype(np.float32)).to(device)

    def __call__(self, weight: Tensor, streams: DropoutStreams | None, rate: float) -> Tensor:
        if streams is None or rate == 0:
            return self._aggregate(self.features) @ weight
        keep = streams.draw(self.features.numel(), rate)
        dropped = (self.features * keep.factors(k).view_as(self.features) for k in range(weight.shape[0]))
        return torch.stack([self._aggregate(x) @ own for x, own in zip(dropped, weight)])

    def _aggregate(self, features: Tensor) -> Tensor:
        return (self.operator @ features) * self.correction
