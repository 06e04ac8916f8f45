"""Import what a dotted name refers to, as configurations and users give it."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from typing import Any

from pagnn_bench.config.errors import RequestError


def load_named(key: str, target: str) -> Any:
    """The object of this name, from any importable module or one in the current directory.

    Args:
        key: the key that named it, for the error message.
        target: ``package.module.NAME``.
    """
    module_name, _, name = target.rpartition(".")
    # Unlike `python`, a console script does not search the current directory, where users start a method of their own.
    # It goes last, so that no file there can replace an installed module.
    try:
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
        if not module_name:
            raise ImportError("give MODULE.CLASS")
        return getattr(importlib.import_module(module_name), name)
    except Exception as error:  # a mistake in the user's file can raise anything
        reason = error if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise RequestError(f"{key}={target}: cannot be imported ({reason}).") from error


def load_class(key: str, target: str, base: type, called: str) -> type:
    """The class of this name.

    Args:
        key, target: see :func:`load_named`.
        base: its required base class.
        called: the name of the base class, for the error message.
    """
    cls = load_named(key, target)
    if not (inspect.isclass(cls) and issubclass(cls, base)):
        raise RequestError(f"{key}={target}: is not a subclass of {called}.")
    return cls
