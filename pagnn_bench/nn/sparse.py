"""Sparse matrices that stay fixed during training, with gradients only for the dense factor.

torch's own sparse product transposes the matrix again in every backward pass; here the transpose is stored with it.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

# torch announces once per process that CSR support is in beta.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")


def csr_tensor(matrix: sp.csr_array, device: torch.device) -> Tensor:
    """A scipy CSR matrix as a torch CSR tensor, float32 with 32-bit indices."""
    matrix = sp.csr_array(matrix, copy=True)
    matrix.sum_duplicates()  # also sorts the indices, which torch requires
    return torch.sparse_csr_tensor(
        torch.from_numpy(matrix.indptr.astype(np.int32)).to(device),
        torch.from_numpy(matrix.indices.astype(np.int32)).to(device),
        torch.from_numpy(matrix.data.astype(np.float32)).to(device),
        size=matrix.shape,
        check_invariants=True,  # once per matrix; the block matrices built from it in every epoch need no check
    )


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, operator: SparseOperator) -> Tensor:
        ctx.operator = operator
        return operator.matrix @ dense

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return ctx.operator.transpose @ grads[0].contiguous(), None


class SparseOperator:
    """A fixed sparse matrix P [m, r] acting on the node dimension of stacked values."""

    def __init__(self, matrix: sp.csr_array, device: torch.device) -> None:
        self.matrix = csr_tensor(matrix, device)
        self.transpose = csr_tensor(sp.csr_array(matrix.T), device)

    def __call__(self, stacked: Tensor) -> Tensor:
        """[S, r, c] → [S, m, c]: one product on [r, S*c], the seeds folded into the width."""
        members, _, width = stacked.shape
        folded = stacked.transpose(0, 1).reshape(stacked.shape[1], members * width)
        product = _Product.apply(folded, self)
        return product.view(-1, members, width).transpose(0, 1)


class BlockPattern:
    """The structure of one CSR matrix [r, c], repeated down the diagonal for every member of a stack.

    A stack of S matrices with the same structure and different values (per-seed dropout) is one block-diagonal CSR
    matrix [S*r, S*c], so a whole stack costs one library call. The blocks are equal, hence a smaller stack is a
    prefix of a larger one and shrinking costs nothing.
    """

    def __init__(self, matrix: sp.csr_array, device: torch.device) -> None:
        self.shape, self.nnz, self.device = matrix.shape, matrix.nnz, device
        self._crow = torch.from_numpy(matrix.indptr.astype(np.int64)).to(device)
        self._col = torch.from_numpy(matrix.indices.astype(np.int64)).to(device)
        self._members = 0

    def build(self, values: Tensor) -> Tensor:
        """Values [S, nnz] → CSR [S*r, S*c]."""
        members = values.shape[0]
        rows, columns = self.shape
        if members > self._members:
            index = torch.arange(members, device=self.device)[:, None]
            kind = torch.int32 if members * max(self.nnz, columns, rows) < 2**31 else torch.int64
            tails = (self._crow[1:] + index * self.nnz).reshape(-1)
            self._block_crow = torch.cat((self._crow[:1], tails)).to(kind)
            self._block_col = (self._col + index * columns).reshape(-1).to(kind)
            self._members = members
        return torch.sparse_csr_tensor(
            self._block_crow[: members * rows + 1],
            self._block_col[: members * self.nnz],
            values.reshape(-1),
            size=(members * rows, members * columns),
            check_invariants=False,
        )
