"""Configurations as the YAML files have them, and the folder of the real data."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

CONF = Path(__file__).parents[2] / "conf" / "data"


@pytest.fixture
def data_config() -> Callable[..., dict[str, Any]]:
    """``data_config("cora", split="random")``: the resolved group with some keys replaced."""

    def load(name: str, /, **overrides: Any) -> dict[str, Any]:
        config = OmegaConf.merge(OmegaConf.load(CONF / f"{name}.yaml"), overrides)
        return OmegaConf.to_container(config, resolve=True)

    return load


@pytest.fixture(scope="session")
def real_root() -> Path:
    """The folder that PAGNN_DATA names."""
    root = os.environ.get("PAGNN_DATA")
    if not root or not Path(root, "Cora", "raw").is_dir():
        pytest.skip("PAGNN_DATA names no folder with the real datasets")
    return Path(root)
