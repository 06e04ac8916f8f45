"""Methods by configuration: ``_target_`` names the class, the other keys are its arguments."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Mapping
from typing import Any

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import NOT_IDENTITY
from pagnn_bench.methods.base import Method

__all__ = ["Method", "build_method"]


def build_method(config: Mapping[str, Any]) -> Method:
    """Make the method that a resolved ``method`` group describes.

    The class may live in any importable module, or in one of the current directory.
    """
    if "_target_" not in config:
        raise RequestError(f"method={config['name']}: its file names no class (_target_: module.Class).")
    target = str(config["_target_"])
    module_name, _, class_name = target.rpartition(".")
    # Unlike `python`, a console script does not look into the current directory, where a method of one's own begins.
    # Last in the path: no file there can take the place of an installed module.
    try:
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
        cls = getattr(importlib.import_module(module_name), class_name)
    except Exception as error:  # a slip in a file of the user's own can be any exception
        what = error if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise RequestError(f"method._target_={target}: cannot be imported ({what}).") from error
    if not (inspect.isclass(cls) and issubclass(cls, Method)):
        raise RequestError(f"method._target_={target}: is not a subclass of pagnn_bench.methods.Method.")
    shown = {"name", "_target_", "label", "description", "published"}
    for key in sorted(config.keys() & NOT_IDENTITY - shown):
        raise RequestError(
            f"method.{key}: this name is no part of a trial's identity; call the key otherwise."
        )
    arguments = {key: value for key, value in config.items() if key not in shown}
    try:
        return cls(**arguments)
    except RequestError:
        raise
    except Exception as error:  # a key that it or a base class does not take, or a value that it refuses
        raise RequestError(
            f"method={config['name']}: {class_name} cannot be made with these keys "
            f"({type(error).__name__}: {error})."
        ) from error
