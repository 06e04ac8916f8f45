"""Build methods from configuration: ``_target_`` names the class, the other keys are its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import NOT_IDENTITY
from pagnn_bench.config.loading import load_class
from pagnn_bench.methods.base import Method

__all__ = ["Method", "build_method"]


def build_method(config: Mapping[str, Any]) -> Method:
    """Build the method that a resolved ``method`` group describes.

    The class may be in any importable module, or in one in the current directory.
    """
    if "_target_" not in config:
        raise RequestError(f"method={config['name']}: its file names no class (_target_: module.Class).")
    target = str(config["_target_"])
    cls = load_class("method._target_", target, Method, "pagnn_bench.methods.Method")
    not_arguments = {"name", "_target_", "label", "description", "published"}
    for key in sorted(config.keys() & NOT_IDENTITY - not_arguments):
        raise RequestError(
            f"method.{key}: this name is not part of a trial's identity; give the key another name."
        )
    arguments = {key: value for key, value in config.items() if key not in not_arguments}
    try:
        method: Method = cls(**arguments)
        return method
    except RequestError:
        raise
    except Exception as error:  # an unknown key, or a value that it refuses
        raise RequestError(
            f"method={config['name']}: {cls.__name__} cannot be made with these keys "
            f"({type(error).__name__}: {error})."
        ) from error
