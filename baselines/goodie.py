"""GOODIE, "Oldie but Goodie": feature and label propagation in one network (KDD 2025, arXiv 2508.01209)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import softmax

from pagnn_bench.baselines.fp import diffuse
from pagnn_bench.baselines.goodie_contrast import CentroidContrast, Contrast, PairContrast
from pagnn_bench.baselines.goodie_network import GoodieNetwork, GoodiePart
from pagnn_bench.baselines.label_prop import propagate_labels
from pagnn_bench.methods.base import Context, Method, Prepared
from pagnn_bench.methods.values import flag, fraction, not_negative, positive, whole
from pagnn_bench.missing import IncompleteGraph
from pagnn_bench.nn.inputs import make_input
from pagnn_bench.nn.network import PARTS, neighbourhood
from pagnn_bench.nn.propagate import mean_operator, symmetric_operator
from pagnn_bench.nn.sparse import SparseOperator

UNIT_ENTRIES = 1 << 22  # of the columns that :func:`own_share` propagates at once


class Goodie(Method):
    """Combines attributes F from feature propagation and scores P from label propagation by attention::

        h^f = ReLU(ĀF W_f + b_f),  h^l = ReLU(ĀP W_l + b_l)
        w = softmax(leaky(h^f v), leaky(h^l v)),  h = w_1 h^f + w_2 h^l,  logits = Āh W + b

    Ā is the mean over a node and its neighbours. The loss is the cross entropy plus λ times a contrastive loss on h,
    with pseudo labels t_i = argmax P_i and confidences c_i = max softmax(P_i), 1 at training nodes
    (:class:`PairContrast`, :class:`CentroidContrast`). A node that no label reaches has c = 0 and is left out; the
    released code, which uses only the largest component, would give it class 0 and c = 1 / classes.

    P of a training node contains its own label, so on training nodes the second branch is close to the answer.
    ``leave_one_out`` removes a training node's label from its own row of ĀP (:func:`own_share`). The last Ā still
    brings it back from the neighbours.

    Args:
        hidden: width of h.
        num_iterations: steps of feature propagation.
        lp_alpha: α of label propagation.
        lp_iterations: steps of label propagation.
        contrast: λ; 0 leaves the contrastive loss out.
        temperature: τ of the contrastive loss.
        scaled: contrast class centroids instead of all pairs of nodes, for large graphs.
        slope: of the leaky ReLU.
        leave_one_out: see above.
    """

    def __init__(
        self,
        hidden: int,
        num_iterations: int,
        lp_alpha: float,
        lp_iterations: int,
        contrast: float,
        temperature: float,
        scaled: bool,
        slope: float,
        leave_one_out: bool,
    ) -> None:
        self.hidden, self.slope = whole("hidden", hidden), not_negative("slope", slope)
        self.num_iterations = whole("num_iterations", num_iterations)
        self.lp_alpha = fraction("lp_alpha", lp_alpha)
        self.lp_iterations = whole("lp_iterations", lp_iterations)
        self.contrast = not_negative("contrast", contrast)
        self.temperature = positive("temperature", temperature)
        self.scaled, self.leave_one_out = flag("scaled", scaled), flag("leave_one_out", leave_one_out)

    def prepare(self, graph: IncompleteGraph, context: Context) -> Prepared:
        spread, mean = symmetric_operator(graph.adjacency), mean_operator(graph.adjacency)
        device = context.device
        filled = diffuse(spread, graph.features, graph.observed, self.num_iterations, device)
        scores = propagate_labels(spread, graph, self.lp_alpha, self.lp_iterations)
        features, labels = mean @ filled.astype(np.float64), mean @ scores.astype(np.float64)
        if self.leave_one_out:
            train = graph.split.train
            own = own_share(spread, mean, train, self.lp_alpha, self.lp_iterations)
            labels[train, graph.labels[train]] = (labels[train, graph.labels[train]] - own).clip(0)
        parts = {}
        for part in PARTS:
            operator, rows = neighbourhood(mean, getattr(graph.split, part))
            if part == "train" and self.contrast > 0:  # the contrast needs all nodes
                operator, rows = sp.csr_array(mean[graph.split.train]), np.arange(len(filled))
            inputs = (make_input(branch[rows], device) for branch in (features, labels))
            parts[part] = GoodiePart(*inputs, SparseOperator(operator, device))
        contrast = self._contrast(graph, scores, device) if self.contrast > 0 else None
        sizes = (graph.features.shape[1], graph.num_classes, self.hidden)

        def network(seeds: Sequence[int], gain: float) -> GoodieNetwork:
            return GoodieNetwork(parts, contrast, self.contrast, sizes, seeds, self.slope, gain, device)

        return Prepared(network, filled=filled)

    def _contrast(self, graph: IncompleteGraph, scores: np.ndarray, device: torch.device) -> Contrast:
        confidence = np.where(scores.any(axis=1), softmax(scores, axis=1).max(axis=1), 0)
        confidence[graph.split.train] = 1
        kind = CentroidContrast if self.scaled else PairContrast
        return kind(scores.argmax(axis=1), confidence, graph.num_classes, self.temperature, device)


def own_share(
    spread: sp.csr_array, mean: sp.csr_array, nodes: np.ndarray, alpha: float, num_iterations: int
) -> np.ndarray:
    """How much the label of node i itself contributes to row i of ĀP, for some nodes, float64 [k].

    Label propagation is linear, P = R Y, except for its upper bound, which few scores reach. This is (ĀR)_ii, computed
    with unit vectors in place of Y.
    """
    share, block = np.empty(len(nodes)), max(1, UNIT_ENTRIES // spread.shape[0])
    for start in range(0, len(nodes), block):
        chunk = nodes[start : start + block]
        unit = np.zeros((spread.shape[0], len(chunk)))
        unit[chunk, np.arange(len(chunk))] = 1
        scores = unit
        for _ in range(num_iterations):
            scores = alpha * (spread @ scores) + (1 - alpha) * unit
        share[start : start + block] = (mean[chunk] @ scores).diagonal()
    return share
