"""Columns of one scale: ``data.standardise``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from pagnn_bench.data.graph import Graph
from pagnn_bench.missing.observed import Observed


def standardise(graph: Graph, observed: Observed) -> Graph:
    """X'_if = (X_if - μ_f) / σ_f, mean and standard deviation over the observed entries of training nodes.

    Nothing hidden and no other node has a say in μ and σ, so they belong to a mask. Columns in which training nodes
    show 0 and 1 only (words, one-hot) stay as they are; constant ones are only centred; one of which training nodes
    show nothing is 0 everywhere, as nothing can be learned of its scale.

    Args:
        graph: its features are X [n, d]; entries that are missing by nature stay absent.
        observed: the mask, without the entries that are missing by nature.
    """
    train = graph.split.train
    seen = observed.dense()[train]  # [n_train, d]
    values = observed.apply(graph.features)[train].toarray().astype(np.float64)  # 0 where hidden
    count = seen.sum(axis=0)
    mean = values.sum(axis=0) / count.clip(1)
    spread = np.sqrt((seen * (values - mean) ** 2).sum(axis=0) / count.clip(1))
    constant = spread <= 1e-7 * np.abs(mean)  # but for the rounding of float32
    scale = np.where(count == 0, 0.0, 1 / np.where(constant, 1.0, spread))
    binary = (count > 0) & (np.isin(values, (0, 1)) | ~seen).all(axis=0)
    mean[binary], scale[binary] = 0, 1
    scaled = (graph.features.toarray() - mean) * scale
    if graph.known is not None:
        scaled[~graph.known] = 0
    return replace(graph, features=sparse.csr_array(scaled.astype(np.float32)))
