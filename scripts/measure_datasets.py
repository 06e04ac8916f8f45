"""Count the numbers of the dataset cards in docs/datasets.md, from the graphs as they are trained on.

    python scripts/measure_datasets.py           # write docs/measured/datasets.json for all datasets that are available
    python scripts/measure_datasets.py --check   # exit code 1 and the names of those whose numbers have changed

Nothing is downloaded; `pagnn-bench data fetch all` does that. write_docs.py writes the page from the counts.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from pagnn_bench.cli.data import data_config, states
from pagnn_bench.data import Graph, load_graph
from pagnn_bench.data.fetch import SOURCES
from pagnn_bench.data.files import TABLE

FILE = Path(__file__).resolve().parent.parent / "docs/measured/datasets.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    written: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    cards = {name: card(name) for name in TABLE if _is_available(name)}
    if check:
        stale = [name for name, counted in cards.items() if written.get(name) != counted]
        print(f"{len(cards)} datasets available" + (f"; changed: {', '.join(stale)}" if stale else ""))
        return int(bool(stale))
    both = {**written, **cards}
    ordered = {name: both[name] for name in TABLE if name in both}
    FILE.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(cards)} datasets available, {len(ordered)} in {FILE}")
    return 0


def _is_available(name: str) -> bool:
    return {state for _, state in states(Path(data_config(name, None)["root"]), name)} == {"ok"}


def card(name: str) -> dict[str, Any]:
    """The content of a dataset card."""
    config = data_config(name, None)
    files = [list(files) for parts in TABLE[name].values() for files in parts]
    where = [source.title for source in SOURCES if any(all(map(source.address, paths)) for paths in files)]
    texts = {key: config[key] for key in ("label", "description", "licence", "split")}
    return {
        **texts,
        "standardise": config.get("standardise", False),
        "where": where,
        **counts(load_graph(config)),
    }


def counts(graph: Graph) -> dict[str, Any]:
    """The numbers of a graph; shares are of entries, directed edges and labelled nodes."""
    row, column = graph.adjacency.nonzero()
    labels = graph.labels
    both = (labels[row] >= 0) & (labels[column] >= 0)
    degree = np.diff(graph.adjacency.indptr)
    sizes = np.bincount(labels[labels >= 0])
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "mean_degree": round(float(degree.mean()), 2),
        "isolated": int((degree == 0).sum()),
        "attributes": graph.num_features,
        "binary": bool(np.isin(graph.features.data, (0, 1)).all()),
        "density": round(graph.features.nnz / float(np.prod(graph.features.shape)), 4),
        "classes": graph.num_classes,
        "smallest_class": round(float(sizes.min() / sizes.sum()), 3),
        "largest_class": round(float(sizes.max() / sizes.sum()), 3),
        "homophily": round(float((labels[row] == labels[column])[both].mean()), 4),
        "split_sizes": list(graph.split.sizes),
    }


if __name__ == "__main__":
    sys.exit(main())
