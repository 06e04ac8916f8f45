"""Feature Propagation: equal to torch_geometric's, and to the linear system that it converges to."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import connected_components
from torch_geometric.data import Data
from torch_geometric.transforms import FeaturePropagation as Reference
from torch_geometric.utils import add_self_loops

from pagnn_bench.baselines import fp
from pagnn_bench.baselines.fp import FeaturePropagation
from pagnn_bench.config.errors import RequestError
from pagnn_bench.methods.base import Context
from pagnn_bench.missing import hide
from pagnn_bench.nn.propagate import symmetric_operator
from tests.conftest import random_graph, random_observed

CONTEXT = Context(seed=0, device=torch.device("cpu"))


def propagation(num_iterations: int = 40) -> FeaturePropagation:
    return FeaturePropagation(num_iterations, hidden=4, dropout=0.5, input_dropout="post", bias=True)


@pytest.mark.parametrize("pattern", ["rows", "cells"])
@pytest.mark.parametrize("rate", [0.0, 0.5, 0.99])
def test_equals_torch_geometric(pattern, rate):
    graph = random_graph(seed=1)
    observed = random_observed(graph, pattern, rate)
    # torch_geometric leaves self loops to the graph that it is given; the authors' code adds them when it loads one.
    edges, _ = add_self_loops(
        torch.from_numpy(np.array(graph.adjacency.nonzero())), num_nodes=graph.num_nodes
    )
    data = Data(x=torch.from_numpy(graph.features.toarray()), edge_index=edges)
    expected = Reference(torch.from_numpy(~observed.dense()), num_iterations=40)(data).x
    filled = propagation().impute(hide(graph, observed), CONTEXT)
    np.testing.assert_allclose(filled, expected.numpy(), atol=1e-6)


@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_many_steps_solve_the_linear_system(pattern):
    """On the missing entries X = ÂX, that is (I - Â_uu) X_u = Â_uo X_o for every attribute."""
    graph = random_graph(seed=2)
    observed = random_observed(graph, pattern, 0.7)
    filled = propagation(3000).impute(hide(graph, observed), CONTEXT)
    operator = symmetric_operator(graph.adjacency).toarray()
    _, component = connected_components(graph.adjacency)
    x, m = graph.features.toarray(), observed.dense()
    for f in range(graph.num_features):
        o = m[:, f]
        u = ~o & np.isin(component, component[o])
        solution = np.linalg.solve(np.eye(u.sum()) - operator[np.ix_(u, u)], operator[np.ix_(u, o)] @ x[o, f])
        np.testing.assert_allclose(filled[u, f], solution, atol=1e-4)
        np.testing.assert_array_equal(filled[o, f], x[o, f])
        assert not filled[~o & ~u, f].any()  # beyond the reach of any observation


def test_blocks_of_columns_do_not_change_the_result(graph, monkeypatch):
    incomplete = hide(graph, random_observed(graph, "cells"))
    whole = propagation().impute(incomplete, CONTEXT)
    monkeypatch.setattr(fp, "BLOCK_ENTRIES", 5 * graph.num_nodes)
    np.testing.assert_array_equal(propagation().impute(incomplete, CONTEXT), whole)


@pytest.mark.parametrize("value", [0, -1, 1.5, "many"])
def test_a_wrong_number_of_iterations_is_refused(value):
    with pytest.raises(RequestError, match=r"method\.num_iterations="):
        propagation(value)
