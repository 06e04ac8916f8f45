"""The public layer equals the engine, and plain torch_geometric where nothing is missing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric import EdgeIndex
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


# 0 → 1 ← 2 and 1 → 2. Node 0 does not know attribute 1, node 2 knows neither.
X = torch.tensor([[1.0, 9.0], [2.0, 4.0], [9.0, 9.0]])
OBSERVED = torch.tensor([[True, False], [True, True], [False, False]])
DIRECTED = torch.tensor([[0, 2, 1], [1, 1, 2]])
WEIGHT = torch.tensor([3.0, 5.0, 2.0])


def by_hand(norm: str) -> torch.Tensor:
    """Node 1 gets 0 with weight 3, 2 with weight 5 and itself with weight 1, and so on; d̃ = (1, 9, 3)."""
    if norm == "m":
        return torch.tensor([[1.0, 0.0], [(3 * 1 + 2) / 4, 4.0], [2.0, 4.0]])
    root = 3**-0.5
    a10, a12, a11, a21, a22 = 3 / 3, 5 / 3 * root, 1 / 9, 2 / 3 * root, 1 / 3
    first, second = a10 + a12 + a11, a21 + a22  # d̂ of nodes 1 and 2
    return torch.tensor(
        [[1.0, 0.0], [first * (a10 + 2 * a11) / (a10 + a11), first * 4], [second * 2, second * 4]]
    )


def weighted_forms() -> dict[str, tuple]:
    dense = torch.zeros(3, 3)
    dense[DIRECTED[1], DIRECTED[0]] = WEIGHT
    mixed = torch.tensor([2, 0, 1])
    return {
        "edges": (DIRECTED, OBSERVED, WEIGHT),
        "EdgeIndex": (EdgeIndex(DIRECTED[:, mixed], sparse_size=(3, 3)), OBSERVED, WEIGHT[mixed]),
        "EdgeIndex sorted": (EdgeIndex(DIRECTED, sort_order="col"), OBSERVED, WEIGHT),
        "COO": (dense.to_sparse(), OBSERVED),
        "CSR": (dense.to_sparse_csr(), OBSERVED),
        "CSC": (dense.to_sparse_csc(), OBSERVED),
    }


@pytest.mark.parametrize("form", weighted_forms())
@pytest.mark.parametrize("norm", ["m", "n"])
def test_directed_and_weighted_edges_in_every_form_are_as_by_hand(norm, form):
    layer = PaGNNConv(2, 5, norm=norm)
    torch.testing.assert_close(layer.aggregate_observed(X, *weighted_forms()[form]), by_hand(norm))


def test_an_unsorted_adjacency_stays_as_it_was():
    """In two pieces, too: twice an edge of half the weight."""
    twice = torch.cat([DIRECTED, DIRECTED], dim=1).flip(0)
    adjacency = torch.sparse_coo_tensor(twice, torch.cat([WEIGHT, WEIGHT]) / 2, (3, 3))
    found = PaGNNConv(2, 5, norm="m").aggregate_observed(X, adjacency, OBSERVED)
    torch.testing.assert_close(found, by_hand("m"))
    assert not adjacency.is_coalesced()
    torch.testing.assert_close(adjacency.to_sparse_csr().to_dense(), weighted_forms()["COO"][0].to_dense())


def test_weights_and_directions_are_those_of_gcnconv_where_everything_is_observed():
    edges = torch.cat([DIRECTED, torch.tensor([[2], [2]])], dim=1)  # and a loop that has a weight already
    weight = torch.tensor([3.0, 5.0, 2.0, 0.5])
    layer, reference = PaGNNConv(2, 5), GCNConv(2, 5)
    reference.lin.weight.data.copy_(layer.lin.weight.data)
    torch.testing.assert_close(layer(X, edges, edge_weight=weight), reference(X, edges, weight))


def test_a_node_whose_weights_are_all_0_gets_0_and_finite_gradients():
    edges, weight = torch.tensor([[0, 1], [0, 0]]), torch.zeros(2, requires_grad=True)
    for norm in ("m", "n"):
        out = PaGNNConv(2, 5, norm=norm).aggregate_observed(X, edges, OBSERVED, weight)
        assert (out[0] == 0).all()
        [gradient] = torch.autograd.grad(out.sum(), weight)
        assert gradient.isfinite().all()


def test_the_gradient_of_weights_is_that_of_finite_differences():
    layer, x = PaGNNConv(2, 3).double(), X.double()
    weight = WEIGHT.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda w: layer(x, DIRECTED, OBSERVED, w), weight)


@pytest.mark.parametrize(
    ("x", "adjacency", "weight", "sentence"),
    [
        ((X, X), DIRECTED, None, "one set of nodes"),
        (X, torch.ones(3, 4).to_sparse(), None, r"shape \[3, 4\], but x has 3 nodes"),
        (X, EdgeIndex(DIRECTED, sparse_size=(3, 4)), None, r"shape \[3, 4\], but x has 3 nodes"),
        (X, torch.eye(3).to_sparse(), WEIGHT, "a sparse adjacency has weights of its own"),
        (X, DIRECTED, WEIGHT[:2], r"3 edges need as many weights, not \[2\]"),
        (X, DIRECTED, WEIGHT[:, None], r"3 edges need as many weights, not \[3, 1\]"),
    ],
)
def test_what_does_not_fit_is_refused(x, adjacency, weight, sentence):
    with pytest.raises(ValueError, match=sentence):
        PaGNNConv(2, 5)(x, adjacency, edge_weight=weight)


@pytest.mark.parametrize("norm", ["m", "n"])
def test_compiled_exported_and_traced_it_gives_the_same(norm):
    """Traced by the compiler as one graph, forward and backward; what makes machine code of it takes a minute."""
    layer, given = PaGNNConv(2, 5, norm=norm), (X.clone(), DIRECTED, OBSERVED, WEIGHT)
    expected = layer(*given)
    torch._dynamo.reset()
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(*given), expected)
    gradients = [
        torch.autograd.grad(f(*given).square().sum(), layer.lin.weight)[0] for f in (layer, compiled)
    ]
    torch.testing.assert_close(*gradients)
    torch.testing.assert_close(torch.export.export(layer, given).module()(*given), expected)
    traced = torch.jit.trace(layer, given)
    other = (X[:2], DIRECTED[:, :1], OBSERVED[:2], WEIGHT[:1])
    torch.testing.assert_close(traced(*other), layer(*other))  # the size of the graph is not baked in
