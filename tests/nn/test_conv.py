"""The public layer equals the engine, and plain torch_geometric where nothing is missing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCNConv

from pagnn_bench.nn import PaGNNConv
from pagnn_bench.nn.propagate import mean_operator, partial_aggregate
from tests.conftest import random_observed


@pytest.fixture
def tensors(graph):
    edge_index = torch.from_numpy(np.array(graph.adjacency.nonzero())).long()
    return torch.from_numpy(graph.features.toarray()), edge_index


@pytest.mark.parametrize("norm", ["m", "n"])
@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_equals_the_engine(graph, tensors, norm, pattern):
    observed = random_observed(graph, pattern, 0.7)
    mask = torch.from_numpy(observed.rows if observed.rows is not None else observed.cells)
    layer = PaGNNConv(graph.num_features, 5, norm=norm)
    expected = partial_aggregate(
        graph.adjacency, observed.apply(graph.features), observed, norm
    ).values.toarray()
    got = layer.aggregate_observed(*tensors, mask)
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-6)
    full = torch.from_numpy(expected) @ layer.lin.weight.T + layer.bias
    torch.testing.assert_close(layer(*tensors, mask), full)


def test_everything_observed(graph, tensors):
    layer, reference = PaGNNConv(graph.num_features, 5, norm="n"), GCNConv(graph.num_features, 5)
    reference.lin.weight.data.copy_(layer.lin.weight.data)
    torch.testing.assert_close(layer(*tensors), reference(*tensors))
    mean = PaGNNConv(graph.num_features, 5, norm="m").aggregate_observed(*tensors)
    np.testing.assert_allclose(
        mean.numpy(), (mean_operator(graph.adjacency) @ graph.features).toarray(), atol=1e-6
    )


@pytest.mark.parametrize("norm", ["m", "n"])
def test_nan_at_hidden_places_reaches_neither_output_nor_gradient(graph, tensors, norm):
    x, edge_index = tensors
    observed = torch.from_numpy(random_observed(graph, "cells", 0.9).cells)
    spoiled = torch.where(observed, x, torch.nan).requires_grad_()
    layer = PaGNNConv(graph.num_features, 5, norm=norm)
    out = layer(spoiled, edge_index, observed)
    torch.testing.assert_close(out, layer(x, edge_index, observed))
    out.square().sum().backward()
    assert spoiled.grad.isfinite().all()
    assert (spoiled.grad[~observed] == 0).all()
    assert layer.lin.weight.grad.isfinite().all()


def test_gradient_is_that_of_finite_differences(graph, tensors):
    x, edge_index = tensors
    observed = torch.from_numpy(random_observed(graph, "cells", 0.5).cells)
    layer = PaGNNConv(graph.num_features, 2).double()
    assert torch.autograd.gradcheck(lambda v: layer(v, edge_index, observed), x.double().requires_grad_())


def test_wrong_norm():
    with pytest.raises(ValueError, match="norm='x'"):
        PaGNNConv(3, 3, norm="x")
