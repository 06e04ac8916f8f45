"""Configurations from the YAML files."""

from __future__ import annotations

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
