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
from pagnn_bench.baselines.fp import FeaturePropagation, co_label_links, diffuse
from pagnn_bench.config.errors import RequestError
from pagnn_bench.methods.base import Context
from pagnn_bench.missing import Observed, hide
from pagnn_bench.nn.propagate import symmetric_operator
from tests.conftest import random_graph, random_observed

CONTEXT = Context(seed=0, device=torch.device("cpu"))


def propagation(num_iterations: int = 40, **own) -> FeaturePropagation:
    return FeaturePropagation(num_iterations, hidden=4, dropout=0.5, input_dropout="post", bias=True, **own)


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
    np.testing.assert_allclose(propagation().impute(incomplete, CONTEXT), whole, rtol=1e-6)


@pytest.mark.parametrize("value", [0, -1, 1.5, "many"])
def test_a_wrong_number_of_iterations_is_refused(value):
    with pytest.raises(RequestError, match=r"method\.num_iterations="):
        propagation(value)


def test_links_join_training_nodes_of_one_class_only(graph):
    """There are 13 training nodes, so all are candidates and every pair of one class is joined."""
    incomplete = hide(graph, random_observed(graph, "rows")).for_method()
    added = co_label_links(incomplete, seed=1).toarray() - graph.adjacency.toarray()
    same = np.zeros_like(added, dtype=bool)
    train = graph.split.train
    same[np.ix_(train, train)] = graph.labels[train, None] == graph.labels[train]
    np.testing.assert_array_equal(
        added, same & ~np.eye(len(same), dtype=bool) & (graph.adjacency.toarray() == 0)
    )


def test_links_are_few_and_drawn_by_the_seed(graph, monkeypatch):
    monkeypatch.setattr(fp, "CANDIDATES", 3)
    incomplete = hide(graph, random_observed(graph, "rows")).for_method()
    first, again, other = (co_label_links(incomplete, seed).toarray() for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, first.T)
    assert (first != other).any()
    assert 0 < (first - graph.adjacency.toarray()).sum() <= 2 * 3 * len(graph.split.train)


def test_links_are_for_the_diffusion_alone(graph):
    incomplete = hide(graph, random_observed(graph, "rows", 0.8)).for_method()
    linked, plain = (propagation(link=link).signal(incomplete, CONTEXT) for link in (True, False))
    operator = symmetric_operator(co_label_links(incomplete, CONTEXT.seed))
    expected = diffuse(operator, incomplete.features, incomplete.observed, 40, CONTEXT.device)
    np.testing.assert_array_equal(linked.filled, expected)
    assert (linked.filled != plain.filled).any()
    np.testing.assert_array_equal(linked.operator.toarray(), plain.operator.toarray())


def test_random_columns_are_one_value_each_diffused_like_an_observation(graph):
    """Half as many as there are attributes; in the limit a column is x_r √(d_i / d_r) where r is reached, else 0."""
    incomplete = hide(graph, random_observed(graph, "rows"))
    method = propagation(5000, random_columns=0.5)
    signal = method.signal(incomplete, CONTEXT)
    plain = propagation(5000).signal(incomplete, CONTEXT)
    np.testing.assert_array_equal(signal.filled, plain.filled)
    np.testing.assert_array_equal(signal.aggregated[:, : graph.num_features], plain.aggregated)
    _, features, _ = signal.factors
    columns = features[:, graph.num_features :]
    assert columns.shape[1] == 6
    root = np.sqrt(graph.adjacency.sum(axis=1) + 1)
    _, component = connected_components(graph.adjacency)
    for column in columns.T:
        ratio = column / root
        reached = component == component[ratio.argmax()]
        np.testing.assert_allclose(ratio[reached], ratio.max(), rtol=1e-3)
        assert not column[~reached].any()
    assert len(np.unique(columns.max(axis=0))) == 6
    nothing = propagation(random_columns=0.5).signal(
        hide(graph, Observed(graph.features.shape, rows=np.ones(graph.num_nodes, dtype=bool))), CONTEXT
    )
    assert nothing.aggregated.shape[1] == graph.num_features + 6


@pytest.mark.parametrize(("key", "value"), [("link", "no"), ("random_columns", -1)])
def test_wrong_keys_of_the_controls_are_refused(key, value):
    with pytest.raises(RequestError, match=rf"method\.{key}="):
        propagation(**{key: value})
