"""Ordinary torch modules as methods: the same numbers as our own layers, and a trial is a function of its name."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from pagnn_bench.baselines.zero import Zero
from pagnn_bench.config.errors import RequestError
from pagnn_bench.methods.base import Context
from pagnn_bench.methods.module import Module
from pagnn_bench.missing import hide
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.module_stack import ModuleStack
from pagnn_bench.training.loop import train
from pagnn_bench.training.optimiser import StackedAdam
from pagnn_bench.training.protocol import Protocol
from tests.conftest import random_graph, random_observed
from tests.methods import modules

CPU = torch.device("cpu")
CONTEXT = Context(seed=3, device=CPU)
PROTOCOL = Protocol(
    lr=0.02,
    weight_decay=5e-3,
    patience=5,
    max_epochs=150,
    stopping="either",
    init_gain=1.0,
    feature_norm="none",
)


def module(name: str, nan: bool = False, dropout: float = 0.5, **args) -> Module:
    path = name if "." in name else f"tests.methods.modules.{name}"
    return Module(module=path, hidden=8, layers=2, dropout=dropout, args=args, nan=nan)


@pytest.fixture
def incomplete():
    graph = random_graph(nodes=60)
    return hide(graph, random_observed(graph, "cells", 0.4)).for_method()


def records(method, graph, seeds, protocol=PROTOCOL):
    """Trained on the training labels alone: no other labels are in the graph, and none are needed here."""
    network = method.prepare(graph, CONTEXT).network([100 + s for s in seeds], 1.0)
    labels = np.arange(len(graph.labels)) % graph.num_classes
    scored = dataclasses.replace(graph, labels=labels)
    return train(network, scored, protocol, [200 + s for s in seeds], CPU, keep_curve=True).records


@pytest.mark.parametrize("name", ["HandGCN", "torch_geometric.nn.GCN"])
def test_a_gcn_with_the_weights_of_our_layers_gives_their_logits(incomplete, name):
    plain = Zero(hidden=8, dropout=0.5, input_dropout="post", bias=True)
    ours = plain.prepare(incomplete, CONTEXT).network([1, 2, 3], 1.0)
    theirs = module(name).prepare(incomplete, CONTEXT).network([1, 2, 3], 1.0)
    torch.manual_seed(0)
    for p in ours.parameters():
        p.data.uniform_(-1, 1)
    values = dict(ours.named_parameters())
    weights = [values[f"weight{k}"].detach().transpose(1, 2) for k in (1, 2)]
    biases = [values[f"bias{k}"].detach()[:, 0] for k in (1, 2)]
    if name == "HandGCN":
        keys = ("first:weight", "second:weight", "first:bias", "second:bias")
    else:
        keys = ("convs:0:lin:weight", "convs:1:lin:weight", "convs:0:bias", "convs:1:bias")
    theirs.replace(dict(zip(keys, weights + biases)))
    for part in ("train", "val", "test"):
        torch.testing.assert_close(theirs(part, None), ours(part, None), rtol=1e-4, atol=1e-5)


def test_gradients_are_those_of_the_stack_as_a_whole(incomplete):
    """Member by member, and by autograd through all of them at once."""
    network = module("HandGCN").prepare(incomplete, CONTEXT).network([1, 2, 3], 1.0)
    target = torch.from_numpy(incomplete.labels[incomplete.split.train])

    def objective(logits):
        return F.cross_entropy(logits.transpose(1, 2), target.expand(len(logits), -1), reduction="none").mean(
            1
        )

    losses = network.backward(DropoutStreams([4, 5, 6], CPU), objective)
    found = {name: p.grad.clone() for name, p in network.named_parameters()}
    network.zero_grad()
    expected = objective(network("train", DropoutStreams([4, 5, 6], CPU)))
    expected.sum().backward()
    torch.testing.assert_close(losses, expected.detach())
    for name, p in network.named_parameters():
        torch.testing.assert_close(found[name], p.grad)


NAMES = ["HandGCN", "Normalised", "Tied", "HooksWithLoss", "OtherRandomness", "torch_geometric.nn.GAT"]


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_alone_is_the_seed_among_three_in_any_order(incomplete, name):
    method = module(name)
    together = records(method, incomplete, [0, 1, 2])
    assert len({record["epochs"] for record in together}) > 1
    other_order = dict(zip((2, 1), records(method, incomplete, [2, 1])))
    [alone] = records(method, incomplete, [1])
    for found, expected in (
        (other_order[2], together[2]),
        (other_order[1], together[1]),
        (alone, together[1]),
    ):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            # Losses to the last digits but one: Adam's vector instructions end elsewhere in a longer stack.
            assert found[key] == (
                pytest.approx(value, rel=1e-4) if "loss" in key or key == "curve" else value
            ), key


@pytest.mark.parametrize("name", NAMES)
def test_nothing_depends_on_global_generators_and_nothing_moves_them(incomplete, name):
    first = records(module(name), incomplete, [1])
    torch.manual_seed(123)
    random.seed(4)
    np.random.seed(5)  # noqa: NPY002
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    assert records(module(name), incomplete, [1]) == first
    assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]
    assert np.random.get_state()[1].tolist() == states[2]  # noqa: NPY002


def test_members_and_epochs_have_weights_and_dropout_of_their_own(incomplete):
    prepared, streams = module("HandGCN").prepare(incomplete, CONTEXT), DropoutStreams([4, 4, 5], CPU)
    network = prepared.network([1, 1, 1], 1.0)
    first, again = network("train", streams), network("train", streams)
    assert torch.equal(first[0], first[1])
    assert not torch.allclose(first[0], first[2])
    assert not torch.allclose(first[0], again[0])
    evaluated = prepared.network([1, 2], 1.0)("train", None)
    assert not torch.allclose(evaluated[0], evaluated[1])


def test_running_means_are_those_of_a_plain_loop(incomplete):
    """Three epochs of one member with batch normalisation; no dropout, so a plain loop needs no random numbers."""
    method = module("Normalised", dropout=0.0)
    network = method.prepare(incomplete, CONTEXT).network([1, 2], 1.0)
    plain = method.recipe.make(incomplete.features.shape[1], incomplete.num_classes, 2)
    optimiser = StackedAdam(network, [0.01] * 2, [0.1] * 2, "all")
    adam = torch.optim.Adam(plain.parameters(), lr=0.01, weight_decay=0.1)
    x = torch.from_numpy(incomplete.features.toarray())
    edges = torch.from_numpy(np.stack(incomplete.adjacency.tocoo().coords)).long()
    train_nodes = torch.from_numpy(incomplete.split.train)
    target = torch.from_numpy(incomplete.labels)[train_nodes]
    streams = DropoutStreams([3, 4], CPU)
    for _ in range(3):
        network.zero_grad()
        network.backward(streams, lambda logits: F.cross_entropy(logits[0], target)[None])
        optimiser.step()
        adam.zero_grad()
        F.cross_entropy(plain(x, edges, x.isfinite())[train_nodes], target).backward()
        adam.step()
    values = dict(network.named_parameters())
    for name, expected in plain.state_dict().items():
        found = values[name.replace(".", ":")].detach()[1]
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert values["norm:num_batches_tracked"].tolist() == [3, 3]
    expected = plain.eval()(x, edges, x.isfinite())[torch.from_numpy(incomplete.split.val)]
    torch.testing.assert_close(network("val", None)[1], expected, rtol=1e-4, atol=1e-5)


def test_nan_prepare_and_edge_weights(incomplete):
    modules.Hooks.prepared.clear()
    method = module("Hooks", nan=True)
    network = method.prepare(incomplete, CONTEXT).network([1, 2], 1.0)
    [seen] = modules.Hooks.prepared  # once for all members
    known = incomplete.observed.dense()
    np.testing.assert_array_equal(seen.isnan().numpy(), ~known)
    np.testing.assert_array_equal(seen.numpy()[known], incomplete.features.toarray()[known])
    assert network.get_parameter("conv1:lin:weight").shape[-1] == 2 * known.shape[1]
    again = method.prepare(incomplete, CONTEXT).network([1, 2], 1.0)
    assert torch.equal(
        network("val", None), again("val", None)
    )  # the weights that prepare drew are the mask's
    other = method.prepare(incomplete, dataclasses.replace(CONTEXT, seed=4)).network([1, 2], 1.0)
    assert not torch.equal(network("val", None), other("val", None))


def test_without_nan_missing_entries_are_zero(incomplete):
    modules.Hooks.prepared.clear()
    module("Hooks").prepare(incomplete, CONTEXT)
    np.testing.assert_array_equal(modules.Hooks.prepared[0].numpy(), incomplete.features.toarray())


def test_its_own_loss_is_added_in_training_only(incomplete):
    networks = [module(n).prepare(incomplete, CONTEXT).network([1], 1.0) for n in ("Hooks", "HooksWithLoss")]
    target = torch.from_numpy(incomplete.labels[incomplete.split.train])
    losses = [
        network.backward(DropoutStreams([1], CPU), lambda logits: F.cross_entropy(logits[0], target)[None])
        for network in networks
    ]
    torch.testing.assert_close(losses[1], 2 * losses[0])
    for plain, doubled in zip(*(network.parameters() for network in networks)):
        torch.testing.assert_close(doubled.grad, 2 * plain.grad)


def test_shared_weights_stay_shared(incomplete):
    network = module("Tied").prepare(incomplete, CONTEXT).network([1, 2], 1.0)
    assert [name for name, _ in network.named_parameters()] == ["there:weight", "out:weight", "out:bias"]


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("HandGCN", ("first:weight",)),
        ("pagnn_bench.nn.sage.SAGE", ("layers:0:own:weight", "layers:0:neighbours:weight")),
        ("torch_geometric.nn.GCN", ("convs:0:lin:weight",)),
    ],
)
def test_the_first_layer_alone_can_be_decayed(incomplete, name, first):
    network = module(name).prepare(incomplete, CONTEXT).network([1, 2], 1.0)
    assert isinstance(network, ModuleStack)
    assert network.first_layer == first
    before = {key: p.detach().clone() for key, p in network.named_parameters()}
    optimiser = StackedAdam(network, [0.01] * 2, [0.1] * 2, "first")
    for p in network.parameters():
        p.grad = torch.zeros_like(p)
    optimiser.step()
    moved = {key for key, p in network.named_parameters() if not torch.equal(p, before[key])}
    assert moved == set(first)


WHEN_MADE = {
    "NoModule": "method.module=tests.methods.modules.NoModule: is not a subclass of torch.nn.Module",
    "Nobody": "cannot be imported .*no attribute 'Nobody'",
    "no_such_package.Net": "method.module=no_such_package.Net: cannot be imported",
    "UnknownInput": "forward needs an argument `adjacency`, but can only get x, edge_index, observed, edge_weight",
    "UnknownLoss": "loss needs an argument `positive`",
    "BoundPrepare": "prepare needs an argument `self`.*; make it a static method",
    "torch.nn.Linear": "its constructor needs an argument `in_features`.*give it as method.args",
}
WHEN_RUN = {
    "Narrow": r"forward must return logits of shape \[60, 3\] \(nodes, classes\), not \[60, 2\]",
    "Pair": r"logits of shape \[60, 3\] .* not a tuple",
    "InPlace": r"forward changes x in place; use x.clone\(\)",
    "Breaks": r"its forward or loss fails \(IndexError: out of ideas\)",
    "Lazy": "parameters without a shape",
    "NothingToTrain": "no parameters to train",
}


@pytest.mark.parametrize(("name", "sentence"), WHEN_MADE.items())
def test_what_cannot_be_called_is_refused_at_once(name, sentence):
    with pytest.raises(RequestError, match=sentence):
        module(name)


@pytest.mark.parametrize(("name", "sentence"), WHEN_RUN.items())
def test_errors_in_a_module_become_one_sentence(incomplete, name, sentence):
    with pytest.raises(RequestError, match=rf"method\.module=tests.methods.modules.{name}: .*{sentence}"):
        records(module(name), incomplete, [0])


def test_arguments_of_the_constructor(incomplete):
    network = module("torch_geometric.nn.GAT", heads=4).prepare(incomplete, CONTEXT).network([1], 1.0)
    assert network.get_parameter("convs:0:att_src").shape == (1, 1, 4, 2)
    with pytest.raises(
        RequestError, match=r"method\.args\.heads: .*HandGCN has no such argument; it has in_ch"
    ):
        module("HandGCN", heads=4)
    with pytest.raises(RequestError, match=r"cannot be made with .*heads=3.* \(ValueError: "):
        module("torch_geometric.nn.GAT", heads=3).prepare(incomplete, CONTEXT).network([1], 1.0)
