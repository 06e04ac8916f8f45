"""What the tests of SAT share: the method with a small model, and small incomplete graphs."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import torch
from omegaconf import OmegaConf

from pagnn_bench.baselines.sat import SAT
from pagnn_bench.methods import build_method
from pagnn_bench.methods.base import Context
from pagnn_bench.missing import hide
from tests.conftest import random_graph, random_observed

CPU = torch.device("cpu")
CONTEXT = Context(seed=3, device=CPU)
CONF = Path(__file__).parents[2] / "conf"


def group(name: str, **keys):
    config = OmegaConf.merge(OmegaConf.load(CONF / f"{name}.yaml"), keys)
    return {key: value for key, value in OmegaConf.to_container(config).items() if key != "defaults"}


def config(**keys):
    """The method's own YAML, with the keys of the GCN and a model small enough for a test."""
    small = {
        "width": 24,
        "latent": 8,
        "epochs": 12,
        "hidden": 8,
        "dropout": 0.5,
        "input_dropout": "post",
        "bias": True,
    }
    return group("method/sat", **{**small, **keys})


def sat(**keys) -> SAT:
    method = build_method(config(**keys))
    assert isinstance(method, SAT)
    return method


def incomplete(nodes: int = 60, rate: float = 0.4, seed: int = 0, **changes):
    graph = dataclasses.replace(random_graph(nodes=nodes), **changes)
    return hide(graph, random_observed(graph, "rows", rate, seed))
