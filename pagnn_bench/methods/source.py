"""A digest of the code of a class, so that results of an earlier version are not taken for those of this one."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

# What imputation models in any folder use: a change there may change what they learn.
SHARED = ("pagnn_bench.methods.learning", "pagnn_bench.methods.likelihood", "pagnn_bench.nn.")


@cache  # as of its first use: edits to a file while a sweep runs do not affect what runs
def source_digest(cls: type) -> str:
    """A digest of the file with the class and of what it imports, directly or indirectly.

    Only files in the same folder and the code that all models share (``SHARED``) count, and of them only what Python
    runs: a model that took hours is not learned again because a comment or a docstring reads better.
    """
    first = sys.modules[cls.__module__]
    folder, pending, code = _file(first).parent, [first], {}
    while pending:
        module = pending.pop()
        file = _file(module)
        counts = file.parent == folder or module.__name__.startswith(SHARED)
        if counts and file.suffix == ".py" and file not in code:
            tree = ast.parse(file.read_bytes())
            pending += (sys.modules[name] for name in _imported(module, tree) if name in sys.modules)
            code[file] = _without_docstrings(tree)
    return hashlib.sha256("\0".join(code[file] for file in sorted(code)).encode()).hexdigest()


def _without_docstrings(tree: ast.Module) -> str:
    """The code of a file, in which comments and line numbers have no place."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(tree)


def _file(module: ModuleType) -> Path:
    return Path(getattr(module, "__file__", None) or "")  # built-in modules and notebooks have no file


def _imported(module: ModuleType, tree: ast.Module) -> Iterator[str]:
    """The names of the modules that a module imports, and of what it imports from them, which may be modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = importlib.util.resolve_name("." * node.level + (node.module or ""), module.__package__)
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in node.names)
