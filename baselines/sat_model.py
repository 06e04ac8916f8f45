"""The networks, losses and score of SAT, for :mod:`pagnn_bench.baselines.sat`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pagnn_bench.methods.likelihood import Likelihood
from pagnn_bench.nn.dropout import DropoutStreams, dropout
from pagnn_bench.nn.inputs import DenseInput, Input
from pagnn_bench.nn.narrow import narrow_layers, narrow_product
from pagnn_bench.nn.network import xavier_uniform
from pagnn_bench.nn.sparse import BlockPattern, SparseOperator


def _linear(inputs: int, outputs: int, weights: torch.Generator) -> nn.Linear:
    """A linear layer with torch's usual U(±1/√inputs) weights and biases, drawn from our own generator."""
    layer = nn.utils.skip_init(nn.Linear, inputs, outputs)
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -(inputs**-0.5), inputs**-0.5, generator=weights)
    return layer


class MLP(nn.Module):
    """W₂ drop(ReLU(W₁ z + b₁)) + b₂, [m, sizes[0]] → [m, sizes[2]]: both decoders and the discriminator."""

    def __init__(self, sizes: tuple[int, int, int], rate: float, weights: torch.Generator) -> None:
        super().__init__()
        self.rate = rate
        self.first, self.second = (_linear(a, b, weights) for a, b in pairwise(sizes))

    def forward(self, z: Tensor, streams: DropoutStreams | None) -> Tensor:
        return self.second(_drop(torch.relu(self.first(z)), streams, self.rate))


class AttributeEncoder(nn.Module):
    """z_x = W₂ drop(ReLU(W₁ drop(X_T) + b₁)) + b₂ of the nodes whose attributes are known, [t, latent].

    Args:
        known: X_T [t, d], sparse or dense.
        sizes: (d, width, latent).
        rate: dropout rate.
        weights: draws the initial weights.
    """

    def __init__(
        self, known: Input, sizes: tuple[int, int, int], rate: float, weights: torch.Generator
    ) -> None:
        super().__init__()
        self.known, self.rate = known, rate
        self.first, self.second = (_linear(a, b, weights) for a, b in pairwise(sizes))

    def forward(self, streams: DropoutStreams | None) -> Tensor:
        hidden = self.known(self.first.weight.T[None], streams, self.rate)[0] + self.first.bias
        return self.second(_drop(torch.relu(hidden), streams, self.rate))


class StructureEncoder(nn.Module):
    """z_a = ELU(Â drop(ELU(Â U₁)) U₂) of all nodes, [n, latent]: a GCN on the identity, so U₁ is n x width.

    Args:
        operator: Â [n, n].
        sizes: (n, width, latent).
        rate: dropout rate.
        weights: draws the initial weights, Xavier-uniform with gain √2 as in the reference code.
    """

    def __init__(
        self, operator: SparseOperator, sizes: tuple[int, int, int], rate: float, weights: torch.Generator
    ) -> None:
        super().__init__()
        self.operator, self.rate, self.narrow = operator, rate, False
        self.u1, self.u2 = (
            nn.Parameter(xavier_uniform(shape, [weights], gain=2**0.5)) for shape in pairwise(sizes)
        )

    def forward(self, streams: DropoutStreams | None) -> Tensor:
        hidden = dropout(F.elu(self.operator(self.u1)), streams, self.rate)
        product = narrow_product if self.narrow else torch.matmul
        return F.elu(self.operator(product(hidden, self.u2)))[0]


class Generator(nn.Module):
    """All of SAT except the discriminator: one encoder each for attributes and structure, and their shared decoders.

    Args:
        known: X_T [t, d].
        operator: Â [n, n].
        sizes: (n, d, width, latent).
        rate: dropout rate.
        weights: draws the initial weights.
    """

    def __init__(
        self,
        known: Input,
        operator: SparseOperator,
        sizes: tuple[int, int, int, int],
        rate: float,
        weights: torch.Generator,
    ) -> None:
        super().__init__()
        n, d, width, latent = sizes
        self.attributes = AttributeEncoder(known, (d, width, latent), rate, weights)
        self.structure = StructureEncoder(operator, (n, width, latent), rate, weights)
        self.decode_features = MLP((latent, width, d), rate, weights)
        self.decode_links = MLP((latent, latent, latent), rate, weights)

    def to_bfloat16(self) -> None:
        """Compute all dense products in bfloat16 from now on; sparse ones, such as those with Â, stay float32."""
        narrow_layers(self)
        self.structure.narrow = True
        if isinstance(self.attributes.known, DenseInput):
            self.attributes.known.to_bfloat16()


def _drop(values: Tensor, streams: DropoutStreams | None, rate: float) -> Tensor:
    return dropout(values[None], streams, rate)[0]


class _WeightedBCE(torch.autograd.Function):
    """:class:`FeatureLoss` with as few passes over [t, d] as possible: none in the forward pass."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, loss: FeatureLoss) -> Tensor:
        ctx.save_for_backward(logits)
        ctx.loss = loss
        return logits.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (logits,) = ctx.saved_tensors
        grad = ctx.loss.likelihood.mean(logits).mul_(ctx.loss.scale).sub_(ctx.loss.pull)
        return grad.mul_(grads[0] / logits.numel()), None


class FeatureLoss:
    """BCEw: mean binary cross entropy over all entries, where ones weigh w times as much as zeros; half the squared
    error for numbers.

    With x the target and l the logit, an entry costs w x softplus(-l) + (1 - x) softplus(l), which is
    (1 + (w - 1) x) softplus(l) - w x l; a number costs (x - l)² / 2. Called with the logits, it returns a 0 whose
    gradient is that of the loss: training needs no more, and computing the value would take a tenth of a step.

    Args:
        target: X_T [t, d]; words in [0, 1].
        weight: w.
        likelihood: knows which columns are numbers; None: there are none.
    """

    def __init__(self, target: Tensor, weight: float, likelihood: Likelihood | None = None) -> None:
        self.likelihood = likelihood or Likelihood()
        self.scale, self.pull = 1 + (weight - 1) * target, weight * target
        if self.likelihood.words is not None and not self.likelihood.only_words:
            self.scale = torch.where(self.likelihood.words, self.scale, 1.0)
            self.pull = torch.where(self.likelihood.words, self.pull, target)

    def __call__(self, logits: Tensor) -> Tensor:
        return _WeightedBCE.apply(logits, self)


def sample_pairs(operator: sp.csr_array, rng: np.random.Generator) -> sp.csr_array:
    """The pairs on which the adjacency is reconstructed: stored entries 1 (linked) and 0 (not linked), CSR [n, n].

    All non-zeros of Â are linked, including self loops; the same number of other pairs is drawn without repetition (all
    of them if there are fewer). No dense n x n matrix is made.

    Args:
        operator: Â, or the part of it between some nodes; its diagonal is not 0.
        rng: draws the pairs that are not linked.
    """
    nodes = operator.shape[0]
    row, column = operator.nonzero()
    linked = np.sort(row.astype(np.int64) * nodes + column)  # pair (i, j) as the number i n + j
    others = nodes**2 - len(linked)
    rank = rng.choice(others, size=min(len(linked), others), replace=False, shuffle=False)
    # The k-th number that is not linked is k plus the count of linked numbers before it.
    unlinked = rank + np.searchsorted(linked - np.arange(len(linked)), rank, side="right")
    numbers = np.concatenate((linked, unlinked))
    target = np.repeat(np.array([1, 0], dtype=np.float32), (len(linked), len(unlinked)))
    return sp.csr_array((target, (numbers // nodes, numbers % nodes)), shape=operator.shape)


class _PairProducts(torch.autograd.Function):
    """q [n, k] → q_i·q_j of the stored pairs (i, j), in the order of the pattern."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, loss: AdjacencyLoss) -> Tensor:
        ctx.save_for_backward(q)
        ctx.loss = loss
        return torch.sparse.sampled_addmm(loss.pattern.build(loss.target[None]), q, q.T, beta=0).values()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (q,), loss, grad = ctx.saved_tensors, ctx.loss, grads[0][None]
        return loss.pattern.build(grad) @ q + loss.transpose.build(grad[:, loss.order]) @ q, None


class AdjacencyLoss:
    """Mean binary cross entropy of the logits q qᵀ against the links, on sampled pairs only.

    Args:
        pairs: see :func:`sample_pairs`.
        device: where q lives.
    """

    def __init__(self, pairs: sp.csr_array, device: torch.device) -> None:
        position = sp.csr_array((np.arange(pairs.nnz), pairs.indices, pairs.indptr), shape=pairs.shape)
        transposed = sp.csr_array(position.T)
        self.target = torch.from_numpy(pairs.data).to(device)
        self.order = torch.from_numpy(transposed.data.astype(np.int64)).to(device)
        self.pattern, self.transpose = BlockPattern(pairs, device), BlockPattern(transposed, device)

    def __call__(self, q: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(_PairProducts.apply(q, self), self.target)


def hold_out(nodes: np.ndarray, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Split nodes at random into (T, held out), at least one in each; a single node is both."""
    if len(nodes) == 1:
        return nodes, nodes
    shuffled = rng.permutation(nodes)
    held = min(max(1, round(share * len(nodes))), len(nodes) - 1)
    return np.sort(shuffled[held:]), np.sort(shuffled[:held])


def recall(scores: Tensor, truth: Tensor, k: int) -> float:
    """Recall@k: share of a row's ones among its k highest scores, averaged over rows with ones; [m, d] both."""
    top = scores.topk(min(k, scores.shape[1]), dim=1).indices
    ones, hits = truth.sum(dim=1), truth.gather(1, top).sum(dim=1)
    return float((hits[ones > 0] / ones[ones > 0]).mean())
