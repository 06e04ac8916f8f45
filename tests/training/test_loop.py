"""The training loop: equal to a plain one, the same for a seed alone and in company, honest about divergence."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from pagnn_bench.config.errors import RequestError
from pagnn_bench.methods.base import Context
from pagnn_bench.methods.pagnn import PaGNN
from pagnn_bench.missing import hide
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.inputs import DenseInput
from pagnn_bench.nn.network import neighbourhood
from pagnn_bench.nn.propagate import mean_operator, symmetric_operator
from pagnn_bench.training.loop import train
from pagnn_bench.training.optimiser import StackedAdam
from pagnn_bench.training.protocol import Protocol
from tests.conftest import random_graph, random_observed
from tests.reference import PlainPaGNN

CPU = torch.device("cpu")
CONTEXT = Context(seed=0, device=CPU)
PROTOCOL = Protocol(
    lr=0.02,
    weight_decay=5e-3,
    patience=15,
    max_epochs=400,
    stopping="either",
    init_gain=1.414,
    feature_norm="none",
)


def pagnn(
    norm: str = "n", dropout: float = 0.5, input_dropout: str = "post", mask_update: bool = False
) -> PaGNN:
    return PaGNN(
        norm=norm, mask_update=mask_update, hidden=8, dropout=dropout, input_dropout=input_dropout, bias=True
    )


@pytest.fixture
def incomplete():
    graph = random_graph(nodes=90)
    return hide(graph, random_observed(graph, "cells", 0.4))


def run(method, graph, seeds, protocol=PROTOCOL, protocols=None, **options):
    prepared = method.prepare(graph, CONTEXT)
    return train(
        prepared.network([100 + s for s in seeds], protocol.init_gain),
        graph,
        protocols or protocol,
        [200 + s for s in seeds],
        CPU,
        **options,
    )


def copy_weights(plain: PlainPaGNN, network, member: int) -> None:
    plain.lin1.weight.data.copy_(network.weight1[member].T)
    plain.lin1.bias.data.zero_()
    plain.conv2.lin.weight.data.copy_(network.weight2[member].T)
    plain.conv2.bias.data.zero_()


@pytest.mark.parametrize("norm", ["m", "n"])
@pytest.mark.parametrize("pattern", ["rows", "cells"])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_five_steps_equal_a_plain_torch_geometric_loop(norm, pattern, dropout):
    """Same weights, same dropout masks, Adam with L2: the parameters stay together, seed by seed."""
    graph = random_graph(nodes=90)
    graph = hide(graph, random_observed(graph, pattern, 0.6))
    prepared = pagnn(norm, dropout).prepare(graph, CONTEXT)
    network = prepared.network([1, 2, 3], 1.414)
    plains = [PlainPaGNN(graph, norm, hidden=8) for _ in range(3)]
    for member, plain in enumerate(plains):
        copy_weights(plain, network, member)
    labels = torch.from_numpy(graph.labels)
    train_nodes, test_nodes = (torch.from_numpy(part) for part in (graph.split.train, graph.split.test))
    operator = (mean_operator if norm == "m" else symmetric_operator)(graph.adjacency)
    _, rows = neighbourhood(operator, graph.split.train)

    ours = torch.optim.Adam(network.parameters(), lr=0.02, weight_decay=5e-3, fused=True)
    theirs = [torch.optim.Adam(plain.parameters(), lr=0.02, weight_decay=5e-3) for plain in plains]
    streams, same = DropoutStreams([7, 8, 9], CPU), DropoutStreams([7, 8, 9], CPU)
    for _ in range(5):
        ours.zero_grad()
        logits = network("train", streams)
        loss = F.cross_entropy(logits.transpose(1, 2), labels[train_nodes].expand(3, -1), reduction="none")
        loss.mean(1).sum().backward()
        ours.step()
        for member, (plain, adam) in enumerate(zip(plains, theirs)):
            factors = _dense_factors(graph, norm, rows, same, member, dropout, plain)
            adam.zero_grad()
            plain_loss = F.cross_entropy(plain(*factors)[train_nodes], labels[train_nodes])
            torch.testing.assert_close(loss[member].mean(), plain_loss)
            plain_loss.backward()
            adam.step()
    for member, plain in enumerate(plains):
        torch.testing.assert_close(network.weight1[member].T, plain.lin1.weight, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(network.weight2[member].T, plain.conv2.lin.weight, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(network.bias2[member][0], plain.conv2.bias, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(network("test", None)[member], plain()[test_nodes], atol=1e-4, rtol=1e-4)


def _dense_factors(graph, norm, rows, streams, member, dropout, plain):
    """The engine's dropout masks of one member, laid out over the whole dense input and hidden layer."""
    if dropout == 0:
        return 1.0, 1.0
    generator = DropoutStreams([0], CPU)
    generator.generators = [streams.generators[member]]
    nonzero = ((plain.dense @ (plain.m * plain.x)) != 0)[rows]
    inner = torch.zeros(nonzero.shape)
    if nonzero.float().mean() > 0.3:  # dense form: a bit for every entry
        inner = generator.draw(nonzero.numel(), dropout).factors()[0].view(nonzero.shape)
    else:
        inner[nonzero] = generator.draw(int(nonzero.sum()), dropout).factors()[0]
    outer = generator.draw(len(rows) * 8, dropout).factors()[0].view(len(rows), 8)
    inputs, hidden = torch.ones(len(plain.x), plain.x.shape[1]), torch.ones(len(plain.x), 8)
    inputs[rows], hidden[rows] = inner, outer
    return inputs, hidden


@pytest.mark.parametrize("input_dropout", ["post", "pre", "none"])
def test_a_seed_alone_equals_the_seed_in_a_stack(incomplete, input_dropout):
    method = pagnn(input_dropout=input_dropout)
    together = run(method, incomplete, [0, 1, 2, 3, 4])
    # Seeds leave the stack at different times.
    assert len({record["epochs"] for record in together.records}) > 1
    for seed, record in enumerate(together.records):
        alone = run(method, incomplete, [seed]).records[0]
        assert alone["epochs"] == record["epochs"]
        assert alone["best_epoch"] == record["best_epoch"]
        assert alone["test_acc"] == pytest.approx(record["test_acc"], abs=1e-9)
        assert alone["val_loss"] == pytest.approx(record["val_loss"], rel=1e-4)
    reverse = run(method, incomplete, [4, 1])
    assert [r["test_acc"] for r in reverse.records] == [together.records[k]["test_acc"] for k in (4, 1)]


def test_the_same_call_twice_gives_the_same_records(incomplete):
    assert run(pagnn(), incomplete, [0, 1]).records == run(pagnn(), incomplete, [0, 1]).records


def test_the_kept_weights_are_those_of_the_best_epoch(incomplete):
    """Stopping right after the best epoch gives the same test accuracy as stopping `patience` epochs later."""
    record = run(pagnn(), incomplete, [3]).records[0]
    assert record["best_epoch"] < record["epochs"]
    short = dataclasses.replace(PROTOCOL, max_epochs=record["best_epoch"])
    again = run(pagnn(), incomplete, [3], short).records[0]
    assert again["best_epoch"] == record["best_epoch"] == again["epochs"]
    assert again["test_acc"] == record["test_acc"]


@pytest.mark.parametrize("stopping", ["either", "val_loss"])
def test_learns_something(incomplete, stopping):
    result = run(pagnn(), incomplete, [0, 1, 2], dataclasses.replace(PROTOCOL, stopping=stopping))
    assert np.mean([record["test_acc"] for record in result.records]) > 0.5  # chance is a third
    assert result.seed_epochs == sum(record["epochs"] for record in result.records)


def test_a_diverged_seed_fails_alone_and_says_why(incomplete):
    prepared = pagnn().prepare(incomplete, CONTEXT)
    network = prepared.network([100, 101, 102], 1.414)
    with torch.no_grad():
        network.weight2[1, 0, 0] = torch.inf
    result = train(network, incomplete, PROTOCOL, [200, 201, 202], CPU, keep_curve=True)
    expected = run(pagnn(), incomplete, [0, 1, 2]).records
    assert [record["status"] for record in result.records] == ["ok", "failed", "ok"]
    assert "finite" in result.records[1]["reason"]
    assert "test_acc" not in result.records[1]
    assert result.records[1]["curve"] == [None]
    for k in (0, 2):
        assert result.records[k]["test_acc"] == expected[k]["test_acc"]
        assert result.records[k]["epochs"] == expected[k]["epochs"]


def test_curve_and_callback(incomplete):
    seen = []
    result = run(pagnn(), incomplete, [0, 1], keep_curve=True, on_epoch=lambda *event: seen.append(event))
    for record in result.records:
        assert len(record["curve"]) == record["epochs"]
        assert record["curve"][-1] < record["curve"][0]
    assert [epoch for epoch, _ in seen] == list(range(1, max(r["epochs"] for r in result.records) + 1))
    assert sum(len(finished) for _, finished in seen) == 2


def test_mask_update_and_blind_nodes():
    graph = random_graph(nodes=90)
    graph = hide(graph, random_observed(graph, "rows", 0.9))
    for norm in ("m", "n"):
        plain, updated = pagnn(norm), pagnn(norm, mask_update=True)
        facts = plain.prepare(graph, CONTEXT).facts
        assert 0 < facts["blind_share"] < facts["empty_share"] < 1
        assert run(updated, graph, [0]).records[0]["status"] == "ok"
        assert (updated.signal(graph, CONTEXT).operator != plain.signal(graph, CONTEXT).operator).nnz > 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lr", 0),
        ("lr", "fast"),
        ("weight_decay", -1e-3),
        ("patience", 0),
        ("patience", 1.5),
        ("max_epochs", 0),
    ],
)
def test_protocol_values_are_checked(key, value):
    with pytest.raises(RequestError, match=f"protocol.{key}="):
        Protocol.from_config({**dataclasses.asdict(PROTOCOL), key: value})


def test_a_stack_of_settings_trains_each_as_if_it_were_alone(incomplete):
    """Learning rate, weight decay and dropout of their own, in neighbouring and in distant members."""
    settings = [
        (0.02, 5e-3, 0.5),
        (0.005, 0.0, 0.25),
        (0.02, 5e-3, 0.5),
        (0.01, 0.05, 0.75),
        (0.01, 0.05, 0.75),
    ]
    protocols = [dataclasses.replace(PROTOCOL, lr=lr, weight_decay=decay) for lr, decay, _ in settings]
    rates = [rate for _, _, rate in settings]
    stack = run(pagnn(), incomplete, range(5), PROTOCOL, dropout_rates=rates, protocols=protocols)
    for k, (own, rate) in enumerate(zip(protocols, rates)):
        [alone] = run(pagnn(dropout=rate), incomplete, [k], own).records
        together = stack.records[k]
        assert (alone["epochs"], alone["best_epoch"]) == (together["epochs"], together["best_epoch"])
        assert alone["test_acc"] == together["test_acc"]
        assert alone["val_loss"] == pytest.approx(together["val_loss"], abs=1e-5)
    assert len({record["epochs"] for record in stack.records}) > 1  # some left the stack before others


def test_members_of_a_stack_share_their_stopping_rule(incomplete):
    protocols = [PROTOCOL, dataclasses.replace(PROTOCOL, patience=3)]
    with pytest.raises(ValueError, match="differ in more than"):
        run(pagnn(), incomplete, [0, 1], protocols=protocols)


def test_decay_of_the_first_layer_leaves_the_others_alone(incomplete):
    """One step along a gradient of nothing but the penalty moves a weight by the learning rate, or not at all."""
    network = pagnn().prepare(incomplete, CONTEXT).network([1, 2], 1.414)
    before = {name: p.detach().clone() for name, p in network.named_parameters()}
    for p in network.parameters():
        p.grad = torch.zeros_like(p)
    StackedAdam(network, [0.1, 0.1], [0.5, 0.0], "first").step()
    after = dict(network.named_parameters())
    moved = before["weight1"] - after["weight1"]
    torch.testing.assert_close(moved[0], 0.1 * before["weight1"][0].sign(), atol=1e-5, rtol=1e-4)
    for name, p in after.items():
        kept = p[1:] if name == "weight1" else p
        assert torch.equal(kept, before[name][1:] if name == "weight1" else before[name])


def test_bfloat16_trains_like_float32(incomplete):
    """The same losses to a percent, epoch by epoch, and weights that stay float32."""
    protocol = dataclasses.replace(PROTOCOL, max_epochs=20, patience=20)
    found = []
    for narrow in (False, True):
        network = pagnn().prepare(incomplete, CONTEXT).network([1, 2], protocol.init_gain)
        assert isinstance(network.parts["train"].input, DenseInput)
        if narrow:
            network.to_bfloat16()
        records = train(network, incomplete, protocol, [5, 6], CPU, keep_curve=True).records
        assert all(parameter.dtype == torch.float32 for parameter in network.parameters())
        found.append([record["curve"] for record in records])
    assert found[0] != found[1]
    np.testing.assert_allclose(found[1], found[0], rtol=0.02)


def test_stacked_adam_has_the_digits_of_torch_s(incomplete):
    """Members of three settings, one of which leaves the stack: each as under a torch.optim.Adam of its own setting."""
    settings = [(0.1, 0.5), (0.1, 0.5), (0.02, 0.0), (0.1, 0.0)]
    network = pagnn().prepare(incomplete, CONTEXT).network([1, 2, 3, 4], 1.4)
    start = {name: p.detach().clone() for name, p in network.named_parameters()}
    ours = StackedAdam(network, *zip(*settings), "all")
    alone = [{name: p[k : k + 1].clone().requires_grad_() for name, p in start.items()} for k in range(4)]
    theirs = [
        torch.optim.Adam(own.values(), lr=lr, weight_decay=decay, fused=True)
        for own, (lr, decay) in zip(alone, settings)
    ]
    generator, alive = torch.Generator().manual_seed(0), [0, 1, 2, 3]
    for step in range(12):
        if step == 5:
            alive = [0, 2, 3]
            kept = {name: p.detach()[alive] for name, p in network.named_parameters()}
            network.replace(kept)
            ours = ours.selected(network, np.array(alive))
        for name, p in network.named_parameters():
            p.grad = torch.randn(p.shape, generator=generator)
            for place, k in enumerate(alive):
                alone[k][name].grad = p.grad[place : place + 1].clone()
        ours.step()
        for k in alive:
            theirs[k].step()
    for name, p in network.named_parameters():
        for place, k in enumerate(alive):
            assert torch.equal(p[place], alone[k][name].detach()[0]), (name, k)


def test_a_short_training_does_not_load_torch_s_compiler(tmp_path):
    """It takes as long to load as half of torch, and making a torch.optim.Optimizer loads it."""
    code = (
        "import sys; from pagnn_bench.cli import main; "
        "code = main('run experiment=smoke n_jobs=1 protocol.max_epochs=2'.split()); "
        "sys.exit(code or 'torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
