"""What a dotted name stands for, as configurations and users give it."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from typing import Any

from pagnn_bench.config.errors import RequestError


def load_named(key: str, target: str) -> Any:
    """What has this name, in any importable module or in one of the current directory.

    Args:
        key: what named it, for the sentence that refuses it.
        target: ``package.module.NAME``.
    """
    module_name, _, name = target.rpartition(".")
    # Unlike `python`, a console script does not look into the current directory, where a method of one's own begins.
    # Last in the path: no file there can take the place of an installed module.
    try:
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
        if not module_name:
            raise ImportError("give MODULE.CLASS")
        return getattr(importlib.import_module(module_name), name)
    except Exception as error:  # a slip in a file of the user's own can be any exception
        what = error if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise RequestError(f"{key}={target}: cannot be imported ({what}).") from error


def load_class(key: str, target: str, base: type, called: str) -> type:
    """The class of this name.

    Args:
        key, target: as of :func:`load_named`.
        base: what it has to be a subclass of.
        called: the base's name, to tell the user.
    """
    cls = load_named(key, target)
    if not (inspect.isclass(cls) and issubclass(cls, base)):
        raise RequestError(f"{key}={target}: is not a subclass of {called}.")
    return cls
