"""The reference computes the same networks and reaches the same accuracy: what is compared is speed alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from pagnn_bench.bench.contenders import (
    family_of,
    reference_forms,
    reference_inputs,
    reference_model,
)
from pagnn_bench.bench.reference import train_plain
from pagnn_bench.bench.speed import CSR, PLAIN
from pagnn_bench.engine.prepare import prepare
from pagnn_bench.nn.network import PARTS
from pagnn_bench.training.loop import train
from tests.bench.common import CPU, small_masked

METHODS = ("pagnn_n", "pagnn_m", "pagcn", "mf", "zero", "mask_concat", "full", "gcnmf")


def small_gcnmf(method: str) -> list[str]:
    return ["method.components=3"] if method == "gcnmf" else []


def give_weights(model: torch.nn.Module, network: torch.nn.Module) -> None:
    """Put the weights of the first member of a stack into a plain network."""
    own = {name: value.detach()[0] for name, value in network.named_parameters()}
    first = model.lin if hasattr(model, "lin") else model.conv1.lin
    bias = model.bias if hasattr(model, "bias") else getattr(model.conv1, "bias", first.bias)
    with torch.no_grad():
        first.weight.copy_(own["weight1"].T)
        bias.copy_(own["bias1"][0])
        model.conv2.lin.weight.copy_(own["weight2"].T)
        model.conv2.bias.copy_(own["bias2"][0])
        for name in ("log_pi", "mu", "log_sigma2"):
            if name in own:
                getattr(model, name).copy_(own[name])


@pytest.mark.parametrize("missing", ["type1", "type2"])
@pytest.mark.parametrize("method", METHODS)
def test_the_same_weights_give_the_same_logits(method, missing):
    masked = small_masked(method, missing, *small_gcnmf(method))
    prepared = prepare(masked).prepared
    network = prepared.network([3], 1.414)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():  # biases that are not 0, components that differ
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
        if method == "gcnmf":
            # The engine computes γ in double precision, the plain form does not: no variance of 1e-6 here.
            network.log_sigma2.clamp_(min=-3.0)
    inputs = reference_inputs(masked, prepared)
    forms = reference_forms(masked.method)
    assert forms == ((PLAIN,) if method == "gcnmf" else (PLAIN, CSR))
    for form in forms:
        model = reference_model(masked, inputs, form)().eval()
        give_weights(model, network)
        with torch.no_grad():
            logits = model()
            for part in PARTS:
                ours = network(part, None)[0]
                torch.testing.assert_close(
                    logits[getattr(masked.graph.split, part)], ours, rtol=1e-4, atol=1e-5
                )


@pytest.mark.parametrize("method", ["pagnn_n", "pagnn_m", "mf", "gcnmf"])
def test_the_same_training_reaches_the_same_accuracy(method):
    """A seed varies by about 2 points here, so the difference of two means over five of them by about 1.3."""
    masked = small_masked(method, "type1", "rate=0.3", *small_gcnmf(method))
    prepared = prepare(masked).prepared
    protocol = replace(masked.protocol, max_epochs=60, patience=61)
    seeds = list(range(5))
    result = train(prepared.network(seeds, protocol.init_gain), masked.graph, protocol, seeds, CPU)
    build = reference_model(masked, reference_inputs(masked, prepared), CSR)
    plain = [train_plain(build, masked.graph, protocol, seed, CPU).record for seed in seeds]
    assert {record["epochs"] for record in (*plain, *result.records)} == {60}
    ours, theirs = (100 * np.mean([r["test_acc"] for r in records]) for records in (result.records, plain))
    assert ours > 40  # seven classes: it has learned something
    assert abs(ours - theirs) < 4


def test_the_reference_stops_by_the_same_rule():
    masked = small_masked("zero", "type1")
    protocol = replace(masked.protocol, patience=3, max_epochs=200)
    prepared = prepare(masked).prepared
    build = reference_model(masked, reference_inputs(masked, prepared), PLAIN)
    record = train_plain(build, masked.graph, protocol, 0, CPU).record
    assert record["best_epoch"] < record["epochs"] < 200


def test_the_reference_leaves_the_global_generator_alone():
    masked = small_masked("zero", "type1")
    prepared = prepare(masked).prepared
    build = reference_model(masked, reference_inputs(masked, prepared), PLAIN)
    before = torch.get_rng_state()
    short = replace(masked.protocol, max_epochs=2)
    first, second = (train_plain(build, masked.graph, short, 7, CPU).record for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    assert first == second


def test_a_method_of_another_kind_has_no_reference():
    masked = small_masked("mlp", "type1")
    assert (family_of(masked.method), reference_forms(masked.method)) == ("other", ())
