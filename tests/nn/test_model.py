"""The ready model equals the stacked network that the benchmark trains."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCN

from pagnn_bench.methods import build_method
from pagnn_bench.methods.base import Context
from pagnn_bench.missing import hide
from pagnn_bench.nn import PaGNN
from pagnn_bench.nn.network import PARTS
from tests.conftest import random_graph, random_observed
from tests.methods.test_all_methods import config

HIDDEN = 6


def edges_of(graph) -> torch.Tensor:
    return torch.from_numpy(np.stack(graph.adjacency.tocoo().coords)).long()


@pytest.mark.parametrize("pattern", ["rows", "cells"])
@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize("norm", ["m", "n"])
def test_the_same_weights_give_the_logits_of_the_method(norm, layers, pattern):
    graph = random_graph()
    incomplete = hide(graph, random_observed(graph, pattern, 0.7))
    keys = {**config(f"pagnn_{norm}")["method"], "layers": layers, "hidden": HIDDEN}
    stack = build_method(keys).prepare(incomplete, Context(0, torch.device("cpu"))).network([1, 2, 3], 1.0)
    generator = torch.Generator().manual_seed(0)
    for name, values in stack.named_parameters():
        if name.startswith("bias"):  # zero at first
            values.data.normal_(generator=generator)
    observed = torch.tensor(incomplete.observed.dense())
    x = torch.where(observed, torch.from_numpy(graph.features.toarray()), torch.nan)
    model = PaGNN(graph.num_features, HIDDEN, layers, graph.num_classes, dropout=0.5, norm=norm).eval()
    for member in range(3):
        for layer, conv in enumerate(model.convs, start=1):
            conv.lin.weight.data = getattr(stack, f"weight{layer}")[member].T
            conv.bias.data = getattr(stack, f"bias{layer}")[member, 0]
        logits = model(x, edges_of(graph), observed)
        for part in PARTS:
            nodes = torch.from_numpy(getattr(graph.split, part))
            torch.testing.assert_close(logits[nodes], stack(part, None)[member], atol=1e-5, rtol=1e-5)


def test_it_is_the_gcn_of_torch_geometric_where_everything_is_observed():
    """With its shapes, weights on edges, and dropout in the same places."""
    graph = random_graph()
    x, edges = torch.from_numpy(graph.features.toarray()), edges_of(graph)
    weight = torch.rand(edges.size(1), generator=torch.Generator().manual_seed(0))
    ours, theirs = PaGNN(12, 8, 3, dropout=0.4), GCN(12, 8, 3, dropout=0.4)
    theirs.load_state_dict(ours.state_dict())
    assert ours(x, edges).shape == (graph.num_nodes, 8)
    outputs = []
    for model in (ours, theirs):
        torch.manual_seed(3)
        outputs.append(model(x, edges, edge_weight=weight))
    torch.testing.assert_close(*outputs)
    assert not torch.equal(outputs[0], ours.eval()(x, edges, edge_weight=weight))


def test_one_layer_no_bias_and_new_weights():
    model = PaGNN(12, 8, 1, 3, norm="m", bias=False)
    [conv] = model.convs
    assert (conv.in_channels, conv.out_channels, conv.norm, conv.bias) == (12, 3, "m", None)
    before = conv.lin.weight.clone()
    model.reset_parameters()
    assert not torch.equal(conv.lin.weight, before)
    with pytest.raises(ValueError, match="num_layers=0"):
        PaGNN(12, 8, 0)
