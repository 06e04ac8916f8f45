"""``data=custom data.path=FILE``: the user's own graph, an ``.npz`` file or a torch_geometric ``Data``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from pagnn_bench.config.content import read_unchanged
from pagnn_bench.config.errors import RequestError
from pagnn_bench.data.graph import Graph
from pagnn_bench.data.npz import NpzFile
from pagnn_bench.data.raw import RawGraph, finish
from pagnn_bench.data.saved import read_saved

SAVED = (".pt", ".pth")  # by torch.save; .npz files are zip files, too, so only the ending distinguishes them


def load_custom(config: Mapping[str, Any]) -> Graph:
    """Read the file named by ``data.path``; ``data.split=file`` chooses the split inside it."""
    return finish(config, read_custom(config))


def read_custom(config: Mapping[str, Any]) -> RawGraph:
    """The graph as in the file."""
    if not config["path"]:
        raise RequestError(
            "data.path: data=custom needs the path of a file, data.path=FILE.npz or data.path=FILE.pt."
        )
    path, content = str(config["path"]), read_unchanged(config)["path"]
    if PurePath(path).suffix.lower() in SAVED:
        return read_saved(path, content)
    return NpzFile(path, content).raw()
