"""Methods by configuration: ``_target_`` names the class, the other keys are its arguments."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Mapping
from typing import Any

from pagnn_bench.cell import NOT_IDENTITY
from pagnn_bench.errors import RequestError
from pagnn_bench.methods.base import Method

__all__ = ["Method", "build_method"]


def build_method(config: Mapping[str, Any]) -> Method:
    """Make the method that a resolved ``method`` group describes.

    The class may live in any importable module, or in one of the current directory.
    """
    target = str(config["_target_"])
    module_name, _, class_name = target.rpartition(".")
    # Unlike `python`, a console script does not look into the current directory, where a method of one's own begins.
    # Last in the path: no file there can take the place of an installed module.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        cls = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise RequestError(f"method._target_={target}: cannot be imported ({error}).") from error
    if not (inspect.isclass(cls) and issubclass(cls, Method)):
        raise RequestError(f"method._target_={target}: is not a subclass of pagnn_bench.methods.Method.")
    arguments = {k: v for k, v in config.items() if k not in NOT_IDENTITY | {"name", "_target_"}}
    try:
        return cls(**arguments)
    except TypeError as error:  # also a key that a base class refuses, which no signature shows
        raise RequestError(
            f"method={config['name']}: {class_name} does not take these keys ({error})."
        ) from error
