"""Engines that are optional dependencies."""

from __future__ import annotations

import importlib
from typing import Any

from pagnn_bench.config.errors import RequestError


def need(module: str, extra: str) -> Any:
    """Import an optional engine, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise RequestError(
            f"{extra}: the package {module} is not installed: pip install 'pagnn-bench[{extra}]'."
        ) from error
