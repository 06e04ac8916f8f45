"""FSD-CAP: fractional subgraph diffusion with class-aware propagation (ICLR 2026, arXiv 2601.18938)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from pagnn_bench.baselines.fp import BLOCK_ENTRIES
from pagnn_bench.baselines.pcfi import hop_distance
from pagnn_bench.config.identity import seed_for
from pagnn_bench.methods.base import Context, Signal
from pagnn_bench.methods.imputation import LearnedImputation
from pagnn_bench.methods.values import not_negative, positive, whole
from pagnn_bench.missing import IncompleteGraph
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.inputs import make_input
from pagnn_bench.nn.network import LayeredNetwork, Part, layer_rows
from pagnn_bench.nn.propagate import with_self_loops
from pagnn_bench.nn.sparse import SparseOperator, csr_tensor

# The first classifier, as in run_node.py and modelsPre.py of the released code.
LAYERS, HIDDEN, DROPOUT, LR = 3, 64, 0.5, 0.01

TINY = 1e-30  # below every norm but 0


class FSDCAP(LearnedImputation):
    """Diffusion on growing subgraphs, then a pull of every node towards the mean of its predicted class.

    1. :func:`subgraph_diffusion` fills X.
    2. A GCN is trained on it with the training labels. ŷ_i is the label of a training node and the prediction
       elsewhere; s_i = max softmax(logits_i / T) is its confidence.
    3. :func:`class_aware` moves missing entries to s_i x_i + (1 - s_i) m_{ŷ_i}, where m_c is the mean of class c.

    A second GCN, the network that follows, is then trained on the result. Steps 1 to 3 run once per mask, or once per
    seed with ``per_seed``, and are cached like any learned imputation.

    The released code initialises ŷ with the labels of *all* nodes and inserts predictions only at test nodes, so
    validation labels enter the features. Here a method only gets the labels of training nodes. For the same reason the
    first GCN cannot stop by validation accuracy; it is trained for a fixed number of epochs. Other differences: s comes
    from the same weights as ŷ, not from those of the last epoch; a node without neighbours has q = 1, not 0/0.

    Args:
        num_iterations: K, steps in a round of the diffusion.
        gamma: γ, the fractional exponent.
        retain: λ, how much of the previous round is added in every step.
        temperature: T.
        classifier_epochs: epochs of the first GCN.
        **common: see :class:`LearnedImputation`.
    """

    def __init__(
        self,
        num_iterations: int,
        gamma: float,
        retain: float,
        temperature: float,
        classifier_epochs: int,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.num_iterations = whole("num_iterations", num_iterations)
        self.gamma, self.retain = not_negative("gamma", gamma), not_negative("retain", retain)
        self.temperature = positive("temperature", temperature)
        self.classifier_epochs = whole("classifier_epochs", classifier_epochs)

    def learn(self, graph: IncompleteGraph, context: Context) -> np.ndarray:
        filled = subgraph_diffusion(graph, self.num_iterations, self.gamma, self.retain, context.device)
        epochs = first_classifier(graph, self.propagated(graph, filled), context)
        for epoch in range(1, self.classifier_epochs + 1):
            context.report(f"FSD-CAP {epoch}/{self.classifier_epochs}")
            network = next(epochs)
        with torch.no_grad():
            logits = network("all", None)[0]
        labels, confidence = predictions(logits, self.temperature)
        labels[graph.split.train] = graph.labels[graph.split.train]
        return class_aware(graph, filled, labels, confidence)


def first_classifier(graph: IncompleteGraph, signal: Signal, context: Context) -> Iterator[LayeredNetwork]:
    """Train a GCN on the training nodes and yield it after every epoch; its part ``all`` gives logits of all nodes."""
    device, target = context.device, torch.from_numpy(graph.labels[graph.split.train]).to(context.device)
    parts = {}
    for part, nodes in (("train", graph.split.train), ("all", np.arange(len(graph.labels)))):
        operators, rows = layer_rows(signal.operator, nodes, LAYERS)
        inputs = make_input(signal.aggregated[rows], device)
        parts[part] = Part(inputs, tuple(SparseOperator(operator, device) for operator in operators))
    sizes = (signal.aggregated.shape[1], *[HIDDEN] * (LAYERS - 1), graph.num_classes)
    seeds = [seed_for("classifier", seed=context.seed)]
    network = LayeredNetwork(parts, sizes, seeds, (0.0, DROPOUT), 1.0, True, device)
    streams = DropoutStreams([seed_for("classifier dropout", seed=context.seed)], device)
    adam = torch.optim.Adam(network.parameters(), lr=LR, fused=True)
    while True:
        adam.zero_grad(set_to_none=True)
        network.backward(streams, lambda logits: F.cross_entropy(logits[0], target)[None])
        adam.step()
        yield network


def predictions(logits: Tensor, temperature: float) -> tuple[np.ndarray, np.ndarray]:
    """ŷ int [n] and s = max softmax(logits / T) [n], of logits [n, C]."""
    confidence = F.softmax(logits / temperature, dim=1).amax(dim=1)
    return logits.argmax(dim=1).cpu().numpy(), confidence.cpu().numpy()


def subgraph_diffusion(
    graph: IncompleteGraph, num_iterations: int, gamma: float, retain: float, device: torch.device
) -> np.ndarray:
    """X [n, d], float32, filled by diffusion on subgraphs that grow from the observed nodes.

    V_h are the nodes within 1 + 2 + ... + h hops of an observation, G_h the graph between them with self loops, d_k
    the degree of k in it. The authors' operator, D^{-1/2} A D^{-1/2} of G_h to the power γ entry by entry with rows
    normalised, is W_ik = d_k^{-γ/2} / Σ_l d_l^{-γ/2}, since d_i cancels. Starting from P = X = M ⊙ X, round h is::

        K times:  X ← W X + λ P inside V_h, 0 outside, observed entries reset
        then:     P ← X / ‖X‖ inside V_h

    The last round is the first that adds no node. For whole missing rows, V_h and the norm are those of the matrix; for
    single missing entries, those of each column. W X = Ã(c ⊙ X) ⊘ Ãc with c = d^{-γ/2} inside V_h, else 0, works for
    all columns.
    """
    hops, values = hop_distance(graph.adjacency, graph.observed), graph.features.toarray()
    matrix = csr_tensor(with_self_loops(graph.adjacency), device)
    farthest = np.where(np.isinf(hops), 0, hops).max(axis=0)
    # Round h reaches h (h + 1) / 2 hops; the last round is the first that reaches no further than the previous one.
    last = np.ceil((1 + np.sqrt(1 + 8 * farthest)) / 2).astype(int)
    for rounds in np.unique(last):
        columns = np.flatnonzero(np.broadcast_to(last == rounds, values.shape[1]))
        fixed, known, distance = (
            torch.from_numpy(np.ascontiguousarray(array)).to(device)
            for array in (
                values[:, columns],
                graph.observed.dense()[:, columns],
                hops if hops.shape[1] == 1 else hops[:, columns],
            )
        )
        x = previous = fixed
        for h in range(1, int(rounds) + 1):
            inside = (distance <= h * (h + 1) / 2).to(fixed.dtype)
            weight = torch.where(inside > 0, (matrix @ inside) ** (-gamma / 2), 0)
            x = _round(matrix, x, retain * inside * previous, fixed, known, weight, num_iterations)
            norm = (x * inside).norm(dim=0 if inside.shape[1] > 1 else (0, 1), keepdim=True)
            previous = torch.where(inside > 0, x / norm.clamp(min=TINY), previous)
        values[:, columns] = x.cpu().numpy()
    return values


def _round(
    matrix: Tensor, x: Tensor, added: Tensor, fixed: Tensor, known: Tensor, weight: Tensor, steps: int
) -> Tensor:
    """``steps`` times X ← Ã(c ⊙ X) ⊘ Ãc where c > 0, else 0, plus ``added``; known entries are reset; [n, k]."""
    result = torch.empty_like(x)
    scale = torch.where(weight > 0, 1 / (matrix @ weight), 0)
    for columns in torch.arange(x.shape[1]).split(max(1, BLOCK_ENTRIES // len(x))):
        part = slice(int(columns[0]), int(columns[-1]) + 1)
        own = part if weight.shape[1] > 1 else slice(None)
        constant = torch.where(known[:, part], fixed[:, part], added[:, part])
        factor = torch.where(known[:, part], 0, scale[:, own])
        values = x[:, part]
        for _ in range(steps):
            values = torch.addcmul(constant, factor, matrix @ (values * weight[:, own]))
        result[:, part] = values
    return result


def class_aware(
    graph: IncompleteGraph, filled: np.ndarray, labels: np.ndarray, confidence: np.ndarray
) -> np.ndarray:
    """s_i x_i + (1 - s_i) m_{ŷ_i} for all entries, float32 [n, d]; m_c is the mean of class c, weighted by q.

    q_i = 1 - H_i, where H_i is the entropy of the labels ŷ of i and its neighbours, with their number as base.

    Args:
        graph: its edges.
        filled: X [n, d].
        labels: ŷ, int [n].
        confidence: s, float [n].
    """
    member = sp.csr_array(
        (np.ones(len(labels)), (np.arange(len(labels)), labels)), shape=(len(labels), graph.num_classes)
    )
    counts = (with_self_loops(graph.adjacency) @ member).toarray()
    total = counts.sum(axis=1)
    share = counts / total[:, None]
    entropy = -(share * np.log(np.where(share > 0, share, 1))).sum(axis=1)
    weight = 1 - entropy / np.log(np.maximum(total, 2))  # 1 for a node without neighbours
    sums, weights = member.T @ (weight[:, None] * filled), member.T @ weight
    means = np.divide(sums, weights[:, None], out=np.zeros_like(sums), where=weights[:, None] > 0)
    trust = confidence[:, None]
    return (trust * filled + (1 - trust) * means[labels]).astype(np.float32)
