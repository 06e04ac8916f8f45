"""Which components GCNmf needs for which rows: where the responsibility is 0, nothing has to be computed.

Notation as in :mod:`pagnn_bench.baselines.gcnmf_layers`: r rows, K components, h hidden units, S seeds.
"""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor

# A component with this share of the rows is multiplied with all of them, which is cheaper than copying its own.
NEARLY_ALL = 0.75

# A component and a row that this share of the seeds need are multiplied for all seeds in one wide product.
SHARED = 0.3


class Plan(NamedTuple):
    """How to compute the products of a stack that shares its matrices, see :attr:`Pairs.shared_plan`.

    Attributes:
        wide: components with the rows that are multiplied for all seeds.
        single: seeds with their remaining rows and the number of rows per component.
        size: number of results [h]: first those of ``wide``, [rows, S] of each component, then those of ``single``.
        places: the index of the result of each pair, [P].
    """

    wide: list[tuple[int, Tensor]]
    single: list[tuple[int, Tensor, list[tuple[int, int]]]]
    size: int
    places: Tensor


class Pairs:
    """The P triples (seed, component, row) with γ > 0, in this order; every row of a seed has at least one.

    Args:
        needed: bool [S, r, K].

    Attributes:
        rows: the row of each, [P].
        cells: seed * r + row of each, [P].
        flat: its position in [S, r, K], [P].
        components: for every seed the components that at least one of its rows needs.
        groups: the pairs of each of these components.
    """

    def __init__(self, needed: Tensor) -> None:
        self.needed = needed
        members, rows, count = needed.shape
        seed, component, self.rows = needed.mT.nonzero().unbind(1)
        self.cells = seed * rows + self.rows
        self.flat = self.cells * count + component
        # The only read from the device, once for the whole stack.
        sizes = needed.sum(1).cpu().tolist()
        ends = [0, *accumulate(size for own in sizes for size in own)]
        self.components = [[k for k in range(count) if own[k]] for own in sizes]
        self.groups = [
            [slice(ends[s * count + k], ends[s * count + k + 1]) for k in own]
            for s, own in enumerate(self.components)
        ]
        # One pair for each row of each seed, and the remaining ones.
        pair = torch.arange(len(self.rows), device=needed.device)
        self._one = pair.new_empty(members * rows).scatter_(0, self.cells, pair)
        over = torch.ones_like(pair, dtype=torch.bool).index_fill_(0, self._one, False)
        self._over = over.nonzero()[:, 0]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def shared_plan(self) -> Plan:
        """A component and a row are multiplied for all seeds if more than SHARED of them need it, else one by one."""
        members, rows, count = self.needed.shape
        wide = self.needed.sum(0).mT > SHARED * members  # [K, r]
        wide |= wide.sum(1, keepdim=True) >= NEARLY_ALL * rows
        seed, component = self.cells // rows, self.flat % count
        position = wide.flatten().cumsum(0) - 1  # of the wide results
        place = component * rows + self.rows
        places = position[place] * members + seed
        left = (~wide.flatten()[place]).nonzero()[:, 0]
        owners = (seed * count + component)[left].bincount(minlength=members * count)
        # The only read from the device.
        *sizes, single = (*wide.sum(1).cpu().tolist(), owners.view(members, count).cpu().tolist())
        start = sum(sizes) * members
        places[left] = start + torch.arange(len(left), device=left.device)
        chosen = wide.nonzero()[:, 1].split(sizes)
        own = self.rows[left].split([sum(counts) for counts in single])
        return Plan(
            [(k, selected) for k, selected in enumerate(chosen) if len(selected)],
            [
                (s, selected, [(k, size) for k, size in enumerate(counts) if size])
                for s, (selected, counts) in enumerate(zip(own, single))
                if len(selected)
            ],
            start + len(left),
            places,
        )

    def spread(self, values: Tensor) -> Tensor:
        """Values of the rows of every seed, [S, r, h], for each pair: [P, h]."""
        return _Spread.apply(values.flatten(0, 1), self)

    def collect(self, values: Tensor) -> Tensor:
        """The sum over the components of each row: [P, h] → [S, r, h]."""
        return _Collect.apply(values, self).unflatten(0, self.needed.shape[:2])

    def sums(self, values: Tensor) -> Tensor:
        """[P, h] → [S*r, h]; nearly every row has only one pair."""
        total = values.index_select(0, self._one)
        if len(self._over):
            index = self.cells[self._over][:, None].expand(-1, values.shape[1])
            total.scatter_add_(0, index, values.index_select(0, self._over))
        return total


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, pairs: Pairs) -> Tensor:
        ctx.pairs = pairs
        return values.index_select(0, pairs.cells)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return ctx.pairs.sums(grads[0]), None


class _Collect(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, pairs: Pairs) -> Tensor:
        ctx.pairs = pairs
        return pairs.sums(values)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0].index_select(0, ctx.pairs.cells), None
