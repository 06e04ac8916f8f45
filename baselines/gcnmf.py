"""GCNmf: a GCN on Gaussian mixtures (Taguchi, Liu and Murata, Future Generation Computer Systems 117, 2021)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.mixture import GaussianMixture

from pagnn_bench.baselines.gcnmf_fill import make_fill
from pagnn_bench.baselines.gcnmf_layers import (
    AggregatedLayer,
    Mixture,
    ReferenceLayer,
    Responsibilities,
)
from pagnn_bench.baselines.gcnmf_network import GCNmfNetwork, MixturePart
from pagnn_bench.config.errors import RequestError
from pagnn_bench.methods.base import Context, Method, Prepared
from pagnn_bench.methods.values import flag, fraction, whole
from pagnn_bench.missing import IncompleteGraph
from pagnn_bench.nn.network import PARTS, neighbourhood
from pagnn_bench.nn.propagate import symmetric_operator
from pagnn_bench.nn.sparse import SparseOperator


class GCNmf(Method):
    """A missing attribute is a mixture of K Gaussians shared by all nodes, learned together with the GCN::

        x_i | k ~ N(M ⊙ X + (1−M) ⊙ μ_k, (1−M) ⊙ σ²_k)                     what layer 1 gets, per component k
        u_k = Â mean_k W₁ + b₁,   s_k = (Â⊙Â) var_k (W₁⊙W₁)                mean and variance before the ReLU
        H = Σ_k γ_ik E[ReLU(N(u_k, s_k))],   logits = Â H W₂ + b₂

    γ_ik, the responsibility of component k for node i, comes from the observed attributes of i; a node without any gets
    γ = π. With nothing missing this is the GCN. The mixture starts from an EM fit to the mean-filled features.

    Corrections to the public code, whose form ``reference_quirks`` restores: each component has its own
    log-determinant; γ is computed from the input before dropout; under dropout a variance is multiplied by the square
    of the factor; the bias comes after aggregation. Dropout of the input is applied to its aggregated form and is the
    same for all components (:class:`AggregatedLayer`); in the public code it comes before aggregation and differs
    between components.

    Args:
        hidden: width h of the hidden layer.
        dropout: dropout rate of the input and of the hidden layer.
        components: K.
        per_seed: fit the mixture for every seed instead of once per mask.
        reference_quirks: train as the public code does.
    """

    def __init__(
        self, hidden: int, dropout: float, components: int, per_seed: bool, reference_quirks: bool
    ) -> None:
        self.hidden, self.components = whole("hidden", hidden), whole("components", components)
        self.dropout = fraction("dropout", dropout)
        self.per_seed = flag("per_seed", per_seed)
        self.reference_quirks = flag("reference_quirks", reference_quirks)

    @property
    def stackable_dropout(self) -> bool:
        return True

    @property
    def has_bfloat16(self) -> bool:
        return not self.reference_quirks

    def prepare(self, graph: IncompleteGraph, context: Context) -> Prepared:
        context.report(f"mixture of {self.components}")
        mixture = fit_mixture(graph, self.components, context.seed)
        operator = symmetric_operator(graph.adjacency)
        aggregated = sp.csr_array(operator @ graph.features.astype(np.float64)).astype(np.float32)
        parts = {part: self._part(graph, part, operator, aggregated, context.device) for part in PARTS}

        def network(seeds: Sequence[int], gain: float) -> GCNmfNetwork:
            sizes = (self.hidden, graph.num_classes)
            return GCNmfNetwork(parts, mixture, *sizes, seeds, self.dropout, gain, context.device)

        # At high rates most mean-filled rows are alike and one component takes nearly all of them.
        return Prepared(network, {"largest_component": float(mixture.log_pi.exp().max())})

    def _part(
        self,
        graph: IncompleteGraph,
        part: str,
        operator: sp.csr_array,
        aggregated: sp.csr_array,
        device: torch.device,
    ) -> MixturePart:
        nodes, observed = getattr(graph.split, part), graph.observed
        second, rows = neighbourhood(operator, nodes)
        known = observed.dense()[rows] if observed.rows is None else observed.rows[rows, None]
        responsibilities = Responsibilities(graph.features[rows], known, not self.reference_quirks, device)
        fill = make_fill(operator, observed, rows, device)
        layer = AggregatedLayer(aggregated[rows], fill, responsibilities, device)
        if not self.reference_quirks:
            return MixturePart(layer, layer, SparseOperator(second, device), (1.0, 1.0))
        first, columns = neighbourhood(operator, rows)
        own = np.searchsorted(columns, rows)
        missing = ~observed.dense()[columns]
        dropped = ReferenceLayer(first, own, graph.features[columns], missing, device)
        row_sums = torch.from_numpy(operator.sum(axis=1).astype(np.float32)[:, None]).to(device)
        return MixturePart(dropped, layer, SparseOperator(second, device), (row_sums[rows], row_sums[nodes]))


def fit_mixture(graph: IncompleteGraph, components: int, seed: int) -> Mixture:
    """Fit a diagonal Gaussian mixture to the mean-filled features, by EM with scikit-learn's defaults.

    A column without any observation is filled with 0, so its mean is 0 and its variance the minimum of 1e-6.

    Returns:
        log π [K], μ [K, d], log σ² [K, d], float32.
    """
    nodes = graph.features.shape[0]
    if components > nodes:
        raise RequestError(f"method.components={components}: choose at most the number of nodes, {nodes}.")
    known = np.where(graph.observed.dense(), graph.features.toarray().astype(np.float64), np.nan)
    filled = SimpleImputer(strategy="mean", keep_empty_features=True).fit_transform(known)
    with warnings.catch_warnings():
        # Too few distinct rows, or 100 steps of EM were not enough: harmless, as this only initialises training.
        warnings.simplefilter("ignore", ConvergenceWarning)
        random_state = np.random.RandomState(seed % 2**32)
        model = GaussianMixture(components, covariance_type="diag", random_state=random_state).fit(filled)
    parameters = (np.log(model.weights_), model.means_, np.log(model.covariances_))
    return Mixture(*(torch.from_numpy(p.astype(np.float32)) for p in parameters))
