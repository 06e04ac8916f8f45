"""Table 1 of the paper: the datasets and their sizes."""

from __future__ import annotations

from pagnn_bench.analysis.paper import DATASETS
from pagnn_bench.analysis.tables.layout import Table, TablePart, Value


def data_table(paper: dict[str, dict[str, int]], ours: dict[str, dict[str, int]]) -> Table:
    """Table 1 of the paper, and our counts for the graphs that are available."""
    keys = ("nodes", "edges", "features", "classes")
    rows = []
    for name, published in paper.items():
        rows.append([Value(DATASETS[name]), Value("paper"), *(Value(f"{published[key]}") for key in keys)])
        if name in ours:
            rows.append([Value(), Value("ours"), *(Value(f"{ours[name][key]}") for key in keys)])
    caption = ["Edges: the paper quotes raw lists; the graph trained on is simple and undirected."]
    if absent := [DATASETS[name] for name in paper if name not in ours]:
        caption.append(f"Not available here: {', '.join(absent)} (pagnn-bench data fetch).")
    header = ["Dataset", "", "Nodes", "Edges", "Attributes", "Classes"]
    return Table("data", "Table 1: datasets", caption, [TablePart([], header, rows, stub=2)])
