"""precision=bfloat16 in the imputation models and in GCNmf: which products are narrow, what stays float32."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pagnn_bench.baselines.gain import GAIN
from pagnn_bench.baselines.sat import SAT
from pagnn_bench.baselines.vae import VAE
from pagnn_bench.missing import draw_observed, hide
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.narrow import NarrowLinear, narrow_layers
from tests.conftest import random_graph
from tests.methods import gcnmf_cases
from tests.methods.learners import CPU, context, shipped

PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "matmul", "linear")
LEARNERS = {
    "vae": (VAE, {"width": 16, "latent": 4, "epochs": 20, "model_lr": 0.02}),
    "gain": (GAIN, {"width": 16, "iterations": 3}),
    "sat": (SAT, {"width": 16, "latent": 4, "epochs": 3}),
}


class Products(TorchDispatchMode):
    """Kinds of the factors of all dense products, and of what Adam moves."""

    def __init__(self):
        super().__init__()
        self.factors, self.moved = set(), set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if name in PRODUCTS:
            sides = args[-2:]
            if all(side.layout == torch.strided for side in sides):
                self.factors |= {side.dtype for side in sides}
        if name == "_fused_adam_":
            self.moved |= {tensor.dtype for group in args[:5] for tensor in group}
        return func(*args, **(kwargs or {}))


@pytest.fixture(scope="module")
def rows_missing():
    graph = random_graph()
    missing = {"name": "type1", "pattern": "rows", "exact": False}
    return hide(graph, draw_observed(missing, 0.5, graph.features.shape, seed=3))


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("narrow", [False, True])
def test_all_dense_products_of_a_model_are_in_the_precision_asked_for(rows_missing, name, narrow):
    kind, short = LEARNERS[name]
    with Products() as seen:
        kind(**shipped(name, short)).learn(rows_missing, dataclasses.replace(context(), narrow=narrow))
    assert seen.factors == {torch.bfloat16 if narrow else torch.float32}
    assert seen.moved == {torch.float32}


@pytest.mark.parametrize("name", LEARNERS)
def test_what_is_learned_is_nearly_the_same_and_has_a_file_of_its_own(rows_missing, name, tmp_path):
    kind, short = LEARNERS[name]
    here = dataclasses.replace(context(), cache=tmp_path)
    wide, narrow = (
        kind(**shipped(name, short)).impute(rows_missing, dataclasses.replace(here, narrow=narrow))
        for narrow in (False, True)
    )
    assert len(list(tmp_path.glob("*.npz"))) == 2
    difference = np.abs(wide - narrow).max()
    assert 0 < difference < 0.05


def test_a_narrow_layer_shares_its_parameters_and_rounds_the_factors_only():
    layer = torch.nn.Linear(40, 3)
    model = torch.nn.Sequential(layer, torch.nn.Sigmoid())
    narrow_layers(model)
    assert isinstance(model[0], NarrowLinear)
    assert model[0].weight is layer.weight
    assert model[0].bias is layer.bias
    x = torch.randn(5, 40, generator=torch.Generator().manual_seed(0))
    out = model[0](x)
    rounded = x.bfloat16().double() @ layer.weight.bfloat16().double().T
    torch.testing.assert_close(out.double() - layer.bias.double(), rounded, atol=1e-6, rtol=2**-8)
    out.sum().backward()
    assert layer.weight.grad.dtype == torch.float32
    expected = x.bfloat16().double().sum(0).expand(3, -1)
    torch.testing.assert_close(layer.weight.grad.double(), expected, atol=1e-6, rtol=2**-8)


@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_gcnmf_is_nearly_the_same(pattern):
    """Logits and gradients of one step with the same masks, and of the evaluation; parameters stay float32."""
    graph, found = gcnmf_cases.incomplete(pattern), []
    for narrow in (False, True):
        network = gcnmf_cases.gcnmf().prepare(graph, gcnmf_cases.CONTEXT).network([1, 2], 1.0)
        if narrow:
            network.to_bfloat16()
        logits = network("train", DropoutStreams([5, 6], CPU))
        logits.square().sum().backward()
        gradients = [parameter.grad for parameter in network.parameters()]
        assert {tensor.dtype for tensor in (logits, *gradients)} == {torch.float32}
        with torch.no_grad():
            found.append([logits.detach(), network("val", None), *gradients])
    differences = [(one - other).norm() / one.norm() for one, other in zip(*found)]
    assert max(differences) < 0.03
    assert pattern == "rows" or min(differences[:2]) > 0


def test_the_form_of_the_public_code_has_no_bfloat16():
    assert gcnmf_cases.gcnmf().has_bfloat16
    assert not gcnmf_cases.gcnmf(reference_quirks=True).has_bfloat16
