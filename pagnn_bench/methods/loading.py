"""Classes by their dotted name, as configurations and users give them."""

from __future__ import annotations

import importlib
import inspect
import os
import sys

from pagnn_bench.config.errors import RequestError


def load_class(key: str, target: str, base: type, called: str) -> type:
    """The class of this name, from any importable module or from one of the current directory.

    Args:
        key: what named it, for the sentence that refuses it.
        target: ``package.module.Class``.
        base: what it has to be a subclass of.
        called: the base's name, to tell the user.
    """
    module_name, _, class_name = target.rpartition(".")
    # Unlike `python`, a console script does not look into the current directory, where a method of one's own begins.
    # Last in the path: no file there can take the place of an installed module.
    try:
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
        if not module_name:
            raise ImportError("give MODULE.CLASS")
        cls = getattr(importlib.import_module(module_name), class_name)
    except Exception as error:  # a slip in a file of the user's own can be any exception
        what = error if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise RequestError(f"{key}={target}: cannot be imported ({what}).") from error
    if not (inspect.isclass(cls) and issubclass(cls, base)):
        raise RequestError(f"{key}={target}: is not a subclass of {called}.")
    return cls
