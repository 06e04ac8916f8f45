"""FISF, FSD-CAP, GOODIE, ARB and D2PT against numbers of their public code: see fidelity/README.md."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from pagnn_bench.baselines import fisf
from pagnn_bench.baselines.arb_search import boost
from pagnn_bench.baselines.d2pt import D2PT, nearest_nodes, spread_far
from pagnn_bench.baselines.fisf import FISF
from pagnn_bench.baselines.fsdcap import class_aware, subgraph_diffusion
from pagnn_bench.baselines.goodie import Goodie
from pagnn_bench.baselines.label_prop import plain_operator, propagate_labels
from pagnn_bench.methods.base import Context
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.network import PARTS, StackedNetwork
from pagnn_bench.nn.propagate import symmetric_operator
from pagnn_bench.nn.sparse import csr_tensor
from tests.methods.fidelity import CPU, GivenDropout, incomplete, stored

CONTEXT = Context(seed=0, device=CPU)
patterns = pytest.mark.parametrize("pattern", ["rows", "cells"])


def impute_with_given_draws(public, pattern: str, monkeypatch) -> np.ndarray:
    """Ours, with the nodes and values that the public code drew; it must come to the same choice of attributes."""
    columns, nodes, values = (public[f"{pattern}_{what}"] for what in ("columns", "nodes", "values"))
    order = np.argsort(columns)
    chosen = FISF._flat

    def flat(self, filled, observed):
        found = chosen(self, filled, observed)
        np.testing.assert_array_equal(found, columns[order])
        return found

    monkeypatch.setattr(FISF, "_flat", flat)
    monkeypatch.setattr(fisf, "draw_missing", lambda known, rng: nodes[order])
    monkeypatch.setattr(fisf, "draw_values", lambda *_: values[order])
    steps, alpha, beta, gamma = public["settings"].tolist()
    method = FISF(int(steps), alpha, beta, gamma, hidden=4, dropout=0.5, input_dropout="none", bias=True)
    return method.impute(incomplete(public, public[f"{pattern}_observed"]), CONTEXT)


def test_fisf_rows(monkeypatch):
    """fisf() of daehoum1/fisf, mask type structural."""
    public = stored("fisf")
    filled = impute_with_given_draws(public, "rows", monkeypatch)
    np.testing.assert_allclose(filled, public["rows_filled"], atol=1e-5)


def test_fisf_cells(monkeypatch):
    """fisf(), mask type uniform, where S counts the injected node as an observation; ours does as for rows.

    So the attributes without an injection agree, and those with one do not. (Of these one value went to a node with an
    observation, which the public code overwrites; its draw is given to ours as well.)
    """
    public = stored("fisf")
    filled = impute_with_given_draws(public, "cells", monkeypatch)
    difference = np.abs(filled - public["cells_filled"]).max(axis=0)
    injected = np.isin(np.arange(filled.shape[1]), public["cells_columns"])
    assert (difference[~injected] < 1e-5).all()
    assert difference[injected].max() > 1e-3


@patterns
@pytest.mark.parametrize("settings", ["default", "other"])
def test_fsdcap(pattern, settings):
    """stage1 and stage2 of ssjcode/FSD-CAP with oursDiff, for given labels and confidences and two (K, γ, λ)."""
    public = stored("fsdcap")
    graph = incomplete(public | {"labels": public["pseudo"]}, public[f"{pattern}_observed"])
    steps, gamma, retain = public[f"{settings}_settings"].tolist()
    spread = subgraph_diffusion(graph, int(steps), gamma, retain, CPU)
    np.testing.assert_allclose(spread, public[f"{pattern}_{settings}_spread"], atol=1e-5, rtol=1e-5)
    filled = class_aware(graph, spread, public["pseudo"], public["trust"])
    filled = np.where(graph.observed.dense(), spread, filled)
    np.testing.assert_allclose(filled, public[f"{pattern}_{settings}_filled"], atol=1e-5, rtol=1e-5)


def boosted(public, features: np.ndarray, steps: int) -> np.ndarray:
    graph, known = incomplete(public, public["rows_observed"]), public["rows_observed"]
    alpha, beta = public["constants"].tolist()
    *_, last = boost(csr_tensor(plain_operator(graph.adjacency), CPU), features, known, alpha, beta, steps)
    return last.numpy()


@pytest.mark.parametrize("steps", [1, 7, 30])
def test_arb(steps):
    """APA.arb of limengran98/ARB. Its observed entries move, as ours do before they get their values back."""
    public = stored("arb")
    found = boosted(public, public["features"], steps)
    np.testing.assert_allclose(found, public[f"binary_{steps}"], atol=1e-5, rtol=1e-5)


def test_arb_of_continuous_attributes():
    """APA.arb centres what is observed, but begins with 0, not with the mean, where nothing is. The limits agree with
    each other and with its arb_analytical_solution.
    """
    public = stored("arb")
    known, values = public["rows_observed"], public["continuous"]
    mean = values[known[:, 0]].mean(axis=0)
    np.testing.assert_allclose(
        boosted(public, values - mean, 2000) + mean, public["continuous_limit"], atol=1e-4
    )
    assert np.abs(boosted(public, values - mean, 30) + mean - public["continuous_30"]).max() > 0.01


def load(network: StackedNetwork, public) -> None:
    shapes = {name: p.shape for name, p in network.named_parameters()}
    network.replace({name: torch.from_numpy(public[name]).reshape(shape) for name, shape in shapes.items()})


def check_gradients(network: StackedNetwork, public, prefix: str) -> None:
    for name, parameter in network.named_parameters():
        expected = public[f"{prefix}grad_{name}"]
        found = parameter.grad.reshape(expected.shape)
        np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-4, err_msg=name)


@pytest.mark.parametrize("settings", ["pairs", "warm", "scaled"])
def test_goodie(settings):
    """modeler of GOODIE (in francescoferrini/gnnmim) with its layers.py, filling("fp") and torch_geometric's label
    propagation on edges with self loops, as its loader makes them: h and logits, both losses, all gradients.
    """
    public = stored("goodie")
    graph = incomplete(public, public["rows_observed"])
    scaled, temperature, weight = public[f"{settings}_settings"].tolist()
    alpha = float(public["lp_alpha"])
    scores = propagate_labels(symmetric_operator(graph.adjacency), graph, alpha, 50)
    np.testing.assert_allclose(scores, public["scores"], atol=1e-6)
    method = Goodie(5, 40, alpha, 50, weight, temperature, bool(scaled), 0.3, False)
    prepared = method.prepare(graph, CONTEXT)
    np.testing.assert_allclose(prepared.filled, public["filled"], atol=1e-5)
    network = prepared.network([0], 1.0)
    load(network, public)
    np.testing.assert_allclose(
        network._fused(network.parts["train"])[0].detach(), public["fused"], atol=1e-5, rtol=1e-5
    )
    for part in PARTS:
        nodes = getattr(graph.split, part)
        np.testing.assert_allclose(
            network(part, None)[0].detach(), public["logits"][nodes], atol=1e-5, rtol=1e-5
        )
    target, seen = torch.from_numpy(graph.labels[graph.split.train]), []

    def objective(logits):
        seen.append(F.cross_entropy(logits[0], target)[None])
        return seen[0]

    [total] = network.backward(DropoutStreams([0], CPU), objective)
    entropy, contrast = public[f"{settings}_losses"].tolist()
    assert seen[0].item() == pytest.approx(entropy, rel=1e-5)
    assert (total.item() - entropy) / weight == pytest.approx(contrast, rel=2e-5)
    check_gradients(network, public, f"{settings}_")


def test_d2pt():
    """main.py of yixinliu233/D2PT as a script, one epoch, our graph in place of load_data: both propagations, the graph
    of similar nodes, log-probabilities, and loss and gradients under the dropout masks that were drawn.
    """
    public = stored("d2pt")
    graph = incomplete(public, public["cells_observed"])
    spread = spread_far(graph.adjacency, graph.features, 20, 0.05, CPU)
    np.testing.assert_allclose(spread, public["spread"], atol=1e-5)
    similar = nearest_nodes(spread, 3, CPU)
    np.testing.assert_array_equal(similar.toarray(), np.maximum(public["knn"], public["knn"].T))
    np.testing.assert_allclose(
        spread_far(similar, graph.features, 20, 0.05, CPU), public["spread_similar"], atol=1e-5
    )
    network = D2PT(6, 0.5, 20, 0.05, 3, 0.2, 4.0, 0.3).prepare(graph, CONTEXT).network([0], 1.0)
    load(network, public)
    found = F.log_softmax(network("test", None)[0], dim=1).detach()
    np.testing.assert_allclose(found, public["log_softmax"][graph.split.test], atol=1e-5)
    streams = GivenDropout([public[f"keep{k}"] for k in range(6)], 0.5)
    target = torch.from_numpy(graph.labels[graph.split.train])
    [loss] = network.backward(streams, lambda logits: F.cross_entropy(logits[0], target)[None])
    assert not streams.masks
    assert loss.item() == pytest.approx(float(public["loss"]), rel=1e-5)
    check_gradients(network, public, "")
