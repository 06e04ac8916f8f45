"""Methods by configuration: ``_target_`` names the class, the other keys are its arguments."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any

from pagnn_bench.cell import NOT_IDENTITY
from pagnn_bench.errors import RequestError
from pagnn_bench.methods.base import Method

__all__ = ["Method", "build_method"]


def build_method(config: Mapping[str, Any]) -> Method:
    """Make the method that a resolved ``method`` group describes; the class may live in any importable module."""
    target = str(config["_target_"])
    module_name, _, class_name = target.rpartition(".")
    try:
        cls = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise RequestError(f"method._target_={target}: cannot be imported ({error}).") from error
    if not (inspect.isclass(cls) and issubclass(cls, Method)):
        raise RequestError(f"method._target_={target}: is not a subclass of pagnn_bench.methods.Method.")
    arguments = {k: v for k, v in config.items() if k not in NOT_IDENTITY | {"name", "_target_"}}
    try:
        inspect.signature(cls).bind(**arguments)
    except TypeError as error:
        raise RequestError(
            f"method={config['name']}: {class_name} does not take these keys ({error})."
        ) from error
    return cls(**arguments)
