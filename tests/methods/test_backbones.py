"""Other networks behind the methods that fill in."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
import torch_geometric.nn

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import LATER_KEYS, Cell
from pagnn_bench.engine.execute import Executor, stack_key
from pagnn_bench.methods import build_method
from pagnn_bench.methods.base import Context
from pagnn_bench.methods.imputation import ImputationMethod, LearnedImputation
from pagnn_bench.missing import hide
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.network import LayeredNetwork
from pagnn_bench.nn.sage import SAGE
from tests.conftest import random_graph, random_observed
from tests.methods.test_all_methods import CPU, cell_of, config, named

CONTEXT = Context(seed=7, device=CPU)
FILLINGS = named(ImputationMethod)


def with_network(name: str, network: str, **keys) -> Cell:
    cell = cell_of(name)
    return dataclasses.replace(cell, method={**cell.method, "network": network, **keys})


def test_sage_is_that_of_torch_geometric():
    """With the weights of one put into the other, two layers, an isolated node included."""
    graph = random_graph()
    edges = torch.from_numpy(np.stack(graph.adjacency.tocoo().coords)).long()
    x = torch.from_numpy(graph.features.toarray())
    theirs = torch_geometric.nn.GraphSAGE(12, 8, 2, 3).eval()
    ours = SAGE(12, 8, 3, num_layers=2, dropout=0.5).eval()
    for conv, layer in zip(theirs.convs, ours.layers):
        layer.own.weight.data, layer.own.bias.data = conv.lin_r.weight.data, conv.lin_l.bias.data
        layer.neighbours.weight.data = conv.lin_l.weight.data
    torch.testing.assert_close(ours(x, edges), theirs(x, edges))


@pytest.mark.parametrize("name", FILLINGS)
def test_the_gcn_is_the_default_and_no_other_cell(name):
    cell, written = cell_of(name), with_network(name, "gcn")
    without = {key: value for key, value in cell.method.items() if key != "network"}
    assert cell.method["network"] == LATER_KEYS["method"]["network"] == "gcn"
    assert cell.hash == written.hash == dataclasses.replace(cell, method=without).hash
    assert with_network(name, "sage").hash != cell.hash
    graph = hide(random_graph(), random_observed(random_graph(), "rows"), oracle=True)
    network = build_method(without).prepare(graph, CONTEXT).network([1], 1.0)
    assert isinstance(network, LayeredNetwork)


@pytest.mark.parametrize("network", ["sage", "gat", "tests.methods.modules.HandGCN"])
@pytest.mark.parametrize("name", FILLINGS)
def test_every_filling_has_every_network_behind_it(name, network):
    """What is filled in is the same, and it is what the network sees."""
    graph = hide(random_graph(), random_observed(random_graph(), "rows"), oracle=True)
    keys = config(name)["method"]
    usual = build_method(keys).prepare(graph, CONTEXT)
    other = build_method({**keys, "network": network}).prepare(graph, CONTEXT)
    if usual.filled is None:
        assert other.filled is None  # the mask is input, but nothing is estimated
    else:
        np.testing.assert_array_equal(_dense(other.filled), _dense(usual.filled))
    stack = other.network([1, 2], 1.0)
    if usual.filled is not None:
        np.testing.assert_array_equal(stack.inputs.forward["x"].numpy(), _dense(usual.filled))
    assert stack("val", None).shape == (2, len(graph.split.val), 3)
    assert stack("val", None).isfinite().all()


def _dense(values):
    return values if isinstance(values, np.ndarray) else values.toarray()


@pytest.mark.parametrize("network", ["sage", "gat"])
def test_it_trains_and_a_seed_alone_is_the_seed_among_three(network):
    cell = with_network("fp", network)
    together, alone = (Executor(CPU).run(cell, 0, seeds).records for seeds in ((0, 1, 2), (1,)))
    assert np.mean([record["test_acc"] for record in together]) > 0.5  # chance is a third
    for key in ("status", "epochs", "best_epoch", "test_acc", "val_acc"):
        assert alone[0][key] == together[1][key]


def test_dropout_of_the_input_is_on_the_filled_attributes():
    graph = hide(random_graph(), random_observed(random_graph(), "rows"), oracle=True)
    path = "tests.methods.modules.HandGCN"  # its own dropout is off in what follows: the rate is ours alone
    outputs = {}
    for input_dropout in ("post", "pre", "none"):
        keys = {**config("mf")["method"], "network": path, "input_dropout": input_dropout}
        stack = build_method(keys).prepare(graph, CONTEXT).network([1, 2], 1.0)
        assert stack.inputs.input_rate == (0.0 if input_dropout == "none" else 0.5)
        outputs[input_dropout] = stack("train", DropoutStreams([3, 4], CPU))
    assert torch.equal(outputs["post"], outputs["pre"])
    assert not torch.allclose(outputs["post"], outputs["none"])


def test_what_was_learned_once_serves_all_networks():
    for name in named(LearnedImputation):
        keys = config(name)["method"]
        first, other = build_method(keys), build_method({**keys, "network": "gat"})
        assert isinstance(first, LearnedImputation)
        assert isinstance(other, LearnedImputation)
        assert first.settings() == other.settings()
        assert "network" not in first.settings()


def test_settings_of_dropout_train_as_one_stack_only_before_the_gcn():
    assert stack_key(with_network("mf", "gcn", dropout=0.3)) == stack_key(with_network("mf", "gcn"))
    assert stack_key(with_network("mf", "sage")) is None


@pytest.mark.parametrize("name", ["pagnn_n", "pagcn", "mlp"])
def test_a_method_that_is_a_network_takes_no_other(name):
    with pytest.raises(RequestError, match=r"method\.network=gat: \w+ is a network itself"):
        build_method({**config(name)["method"], "network": "gat"})


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        (
            {"network": "sagee"},
            r"method\.network=sagee: choose one of gcn, sage, gat, or a torch module such",
        ),
        ({"network": 3}, r"method\.network=3: choose one of gcn, sage, gat"),
        ({"network": "nowhere.Net"}, r"method\.network=nowhere\.Net: cannot be imported"),
        ({"network": "gat", "hidden": 12}, r"method\.hidden=12: gat has 8 heads; give a multiple of 8\."),
    ],
)
def test_what_is_no_network_is_refused(keys, sentence):
    with pytest.raises(RequestError, match=sentence):
        build_method({**config("mf")["method"], **keys})
