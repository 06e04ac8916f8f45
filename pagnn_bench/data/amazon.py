"""``data=amaphoto`` and ``data=amacomp``: the Amazon co-purchase graphs of Shchur et al. (2018)."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from pagnn_bench.data.fetch import obtain
from pagnn_bench.data.files import data_root, read_checked
from pagnn_bench.data.graph import Graph, Split, build_graph
from pagnn_bench.data.splits import choose_split


def load_amazon(config: Mapping[str, Any]) -> Graph:
    """Read AmaPhoto or AmaComp as torch_geometric does: binary words, links in both directions."""
    name = config["name"]
    root = data_root(config["root"])

    def arrays(part: str) -> dict[str, np.ndarray]:
        files, _ = obtain(root, name, part)
        (content,) = read_checked(root, name, files).values()
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return dict(archive)

    def gcnmf() -> Split:
        indices = arrays("split")
        return Split(indices["train_idx"], indices["val_idx"], indices["test_idx"])

    raw = arrays("graph")
    words, links = (
        sparse.csr_array((raw[f"{m}_data"], raw[f"{m}_indices"], raw[f"{m}_indptr"]), shape=raw[f"{m}_shape"])
        for m in ("attr", "adj")
    )
    split = choose_split(config, raw["labels"], {"gcnmf": gcnmf})
    return build_graph(name, words > 0, np.stack(links.nonzero()), raw["labels"], split)
