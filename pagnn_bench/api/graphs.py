"""``pagnn_bench.load_graph`` and ``pagnn_bench.draw_mask``: the graphs and masks that trials use."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from pagnn_bench.api.words import Key, configurations
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import mask_axes, parse_rate, seed_for
from pagnn_bench.config.schema import whole
from pagnn_bench.data import Graph
from pagnn_bench.data import load_graph as load_configured
from pagnn_bench.missing import check_missing, observe


def load_graph(
    data: Key = "cora", *words: str, config_dir: str | PathLike[str] | None = None, **keys: Key
) -> Graph:
    """The graph of ``data=...``, checked and in canonical form::

        graph = load_graph("cora")
        graph = load_graph("custom", path="graph.npz", name="mine")
        graph.features, graph.adjacency, graph.labels, graph.split.train, graph.known

    Args:
        data: the name of a dataset (``pagnn-bench list data``).
        *words: as in a shell: ``"data.split=random"``.
        config_dir: a folder with your own data (``--config-dir``).
        **keys: keys of the dataset, without ``data.``: ``path=...``, ``split="random"``.

    Raises:
        RequestError: the request was wrong, or files are missing or damaged.
    """
    config = _one(
        configurations(
            words, {"data": data, **{f"data.{key}": value for key, value in keys.items()}}, config_dir
        )
    )
    return load_configured(config["data"])


def draw_mask(
    graph: Graph,
    missing: Key = "type1",
    rate: float | None = None,
    mask: int = 0,
    *words: str,
    config_dir: str | PathLike[str] | None = None,
) -> np.ndarray:
    """The mask that ``run`` draws for a graph, a missing type, a rate and the index of a mask.

    ::

        observed = draw_mask(graph, missing="type2", rate=0.5, mask=3)
        x = numpy.where(observed, graph.features.toarray(), numpy.nan)

    Args:
        graph: from :func:`load_graph`; its name is part of the mask's seed.
        missing: the missing type (``pagnn-bench list missing``).
        rate: share of entries to hide; the default of the missing type if None.
        mask: index.
        *words: as in a shell: ``"missing.exact=true"``.
        config_dir: a folder with your own missing types (``--config-dir``).

    Returns:
        bool [n, d], True where the attribute is observed; False where the data has none.

    Raises:
        RequestError: the request was wrong.
    """
    if not isinstance(graph, Graph):
        raise RequestError(
            f"graph: give a graph from load_graph, not a value of type {type(graph).__name__}."
        )
    mask = whole(0).check("mask", int(mask) if isinstance(mask, np.integer) else mask)
    keys: dict[str, Key] = {"missing": missing} if rate is None else {"missing": missing, "rate": rate}
    config = _one(configurations(words, keys, config_dir))
    group, share = config["missing"], parse_rate(config["rate"])
    check_missing(group, share)
    seed = seed_for("mask", **mask_axes(graph.name, group["name"], share, mask))
    return np.array(observe(graph, group, share, seed).dense())


def _one(configs: list[dict[str, Any]]) -> dict[str, Any]:
    if len(configs) > 1:
        raise RequestError(f"{len(configs)} combinations: give one graph, or one mask, at a time.")
    return configs[0]
