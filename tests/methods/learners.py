"""What the tests of learned imputations share."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import torch
from omegaconf import OmegaConf

from pagnn_bench.data import Graph, load_graph
from pagnn_bench.methods.base import Context

CPU = torch.device("cpu")
GCN: dict[str, Any] = {"hidden": 8, "dropout": 0.5, "input_dropout": "post", "bias": True}
NOT_ARGUMENTS = ("defaults", "name", "label", "description", "_target_", "published")


def shipped(name: str, changes: dict[str, Any]) -> dict[str, Any]:
    """The arguments in conf/method/NAME.yaml, but for these changes."""
    config = OmegaConf.to_container(
        OmegaConf.load(str(files("pagnn_bench.conf") / "method" / f"{name}.yaml"))
    )
    assert isinstance(config, dict)
    return GCN | {str(key): value for key, value in config.items() if key not in NOT_ARGUMENTS} | changes


def context(seed: int = 5, report=lambda text: None) -> Context:
    return Context(seed, CPU, report)


def topic_graph() -> Graph:
    """The synthetic graph with few and strong topics: a third of a node's words tell the others."""
    settings = OmegaConf.load(str(files("pagnn_bench.conf") / "data" / "synthetic.yaml"))
    strong = {
        "num_nodes": 400,
        "num_classes": 3,
        "num_features": 45,
        "words_per_node": 18,
        "word_signal": 0.95,
    }
    return load_graph({**settings, **strong, "num_val": 100})
