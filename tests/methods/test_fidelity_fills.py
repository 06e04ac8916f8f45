"""FP and PCFI against numbers of their public code, on small stored graphs: see fidelity/README.md."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.transforms import FeaturePropagation as TorchGeometric
from torch_geometric.utils import add_self_loops

from pagnn_bench.baselines.fp import FeaturePropagation
from pagnn_bench.baselines.pcfi import PCFI, hop_distance
from pagnn_bench.methods.base import Context
from tests.methods.fidelity import CPU, GivenDropout, incomplete, stored

CONTEXT = Context(seed=0, device=CPU)
GCN = {"hidden": 4, "dropout": 0.5, "input_dropout": "none", "bias": True}
patterns = pytest.mark.parametrize("pattern", ["rows", "cells"])


@patterns
@pytest.mark.parametrize("steps", [40, 3])
def test_fp(pattern, steps):
    """FeaturePropagation.propagate of twitter-research/feature-propagation, with self loops as its loader adds them."""
    public = stored("fp")
    graph = incomplete(public, public[f"{pattern}_observed"])
    filled = FeaturePropagation(steps, **GCN).impute(graph, CONTEXT)
    np.testing.assert_allclose(filled, public[f"{pattern}_{steps}_filled"], atol=1e-5)


@patterns
def test_fp_in_torch_geometric(pattern):
    """torch_geometric.transforms.FeaturePropagation itself, on the same graph."""
    public = stored("fp")
    mask = public[f"{pattern}_observed"]
    edges = torch.from_numpy(np.array(public["adjacency"].nonzero()))
    edges, _ = add_self_loops(edges, num_nodes=len(mask))
    data = Data(x=torch.from_numpy(public["features"]), edge_index=edges)
    expected = TorchGeometric(torch.from_numpy(~mask), num_iterations=40)(data).x
    filled = FeaturePropagation(40, **GCN).impute(incomplete(public, mask), CONTEXT)
    np.testing.assert_allclose(filled, expected, atol=1e-5)
    np.testing.assert_allclose(expected, public[f"{pattern}_40_filled"], atol=1e-5)


@patterns
@pytest.mark.parametrize("settings", ["default", "other"])
def test_pcfi(pattern, settings):
    """pcfi() of daehoum1/pcfi: mask type structural for rows, uniform for cells; 100 steps, α 0.9, β 1, and others."""
    public = stored("pcfi")
    steps, alpha, beta = public[f"{settings}_settings"].tolist()
    graph = incomplete(public, public[f"{pattern}_observed"])
    filled = PCFI(int(steps), alpha, beta, **GCN).impute(graph, CONTEXT)
    np.testing.assert_allclose(filled, public[f"{pattern}_{settings}_filled"], atol=1e-5, rtol=1e-5)


def test_pcfi_where_all_that_is_observed_is_one_value():
    """pcfi() where attribute 1 is observed as 1 only. After 100 steps it is 1 up to some 1e-6 everywhere.

    Its correlation with the others is then made of the last digits of float32, in the public code as in ours, and so is
    what the second step adds to it. All other attributes agree.
    """
    public = stored("pcfi")
    mask = public["constant_observed"]
    assert (public["features"][mask[:, 1], 1] == 1).all()
    steps, alpha, beta = public["default_settings"].tolist()
    filled = PCFI(int(steps), alpha, beta, **GCN).impute(incomplete(public, mask), CONTEXT)
    difference = np.abs(filled - public["constant_filled"])
    assert np.delete(difference, 1, axis=1).max() < 1e-5
    assert difference[:, 1].max() < 0.05


def test_pcfi_beyond_the_reach_of_observations():
    """pcfi() where some nodes have no path to any node with a certain attribute observed.

    There the public code has distance 0, the confidence of an observation, for a value of 0; ours has distance ∞ and
    no confidence. Rows with such entries differ, and no others, nor do observed entries. (The authors keep the largest
    component only, so theirs never meets the case.)
    """
    public = stored("pcfi")
    mask = public["cut_observed"]
    graph = incomplete(public, mask, adjacency="cut_adjacency")
    steps, alpha, beta = public["default_settings"].tolist()
    filled, expected = PCFI(int(steps), alpha, beta, **GCN).impute(graph, CONTEXT), public["cut_filled"]
    unreached = np.isinf(hop_distance(graph.adjacency, graph.observed))
    concerned = unreached.any(axis=1)
    assert 0 < concerned.sum() < len(mask)
    np.testing.assert_allclose(filled[~concerned], expected[~concerned], atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(filled[mask], expected[mask], atol=1e-6)
    assert not expected[unreached].any()  # full confidence in 0: the second step leaves it
    assert (
        np.abs(filled[unreached]).max() > 0.1
    )  # no confidence: the second step fills it from other attributes


@pytest.mark.parametrize(("name", "layers"), [("fp", 2), ("pcfi", 3)])
def test_network_behind_it(name, layers):
    """GNN of either models.py with torch_geometric's GCNConv: log-probabilities, training loss and all gradients.

    Dropout between the layers only, under the masks that the public code drew.
    """
    public = stored(name)
    graph = incomplete(public, public["rows_observed"])
    method = FeaturePropagation(40, layers=2, **GCN) if name == "fp" else PCFI(100, 0.9, 1.0, layers=3, **GCN)
    network = method.prepare(graph, CONTEXT).network([0], 1.0)
    shapes = {own: p.shape for own, p in network.named_parameters()}
    assert len(shapes) == 2 * layers
    network.replace({own: torch.from_numpy(public[own]).reshape(shape) for own, shape in shapes.items()})
    found = F.log_softmax(network("test", None)[0], dim=1).detach()
    np.testing.assert_allclose(found, public["log_softmax"], atol=1e-5, rtol=1e-5)

    streams = GivenDropout(list(public["keep"]), 0.5)
    train = torch.from_numpy(public["train"])
    logits = network("train", streams)[0][train]
    assert not streams.masks
    loss = F.cross_entropy(logits, torch.from_numpy(public["labels"])[train])
    assert loss.item() == pytest.approx(float(public["loss"]), rel=1e-5)
    loss.backward()
    for own, parameter in network.named_parameters():
        expected = public[f"grad_{own}"]
        np.testing.assert_allclose(parameter.grad.reshape(expected.shape), expected, atol=1e-5, rtol=1e-4)
