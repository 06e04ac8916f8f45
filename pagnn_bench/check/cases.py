"""What is trained in a check: every method that can be chosen, and the networks that may stand behind a filling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pagnn_bench.config.catalogue import choices
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.sweep import compose_combinations
from pagnn_bench.methods import build_method

# A learned preparation for as long as it takes to use every operation of it. Rounding grows from step to step.
SHORT: dict[str, tuple[str, ...]] = {
    "vae": ("method.epochs=5",),
    "gain": ("method.iterations=20",),
    "sat": ("method.epochs=3",),
    "fsdcap": ("method.num_iterations=20", "method.classifier_epochs=5"),
}
# Modules that are not ours draw their dropout from torch's global generators, which differ between devices.
NO_DROPOUT = "method.dropout=0"
VARIANTS: dict[str, tuple[str, ...]] = {
    "module": ("method=module", NO_DROPOUT),
    "mf, GraphSAGE": ("method=mf", "method.network=sage", NO_DROPOUT),
    "mf, GAT": ("method=mf", "method.network=gat", NO_DROPOUT),
}
MISSING = ("type1", "type2")

# The sizes of AmaComp, on a graph that needs no download: nodes, undirected edges, features, the 267 words of a node.
AMACOMP = (
    "data=synthetic",
    "data.num_nodes=13752",
    "data.num_classes=10",
    "data.num_features=767",
    "data.avg_degree=35.76",
    "data.words_per_node=530",
    "data.train_per_class=40",
    "data.num_val=500",
    "method.hidden=64",
)


@dataclass(frozen=True)
class Case:
    """A method on some missing entries of a graph, by the name that tables show."""

    name: str
    missing: str
    cell: Cell


def every_method(quick: bool) -> Iterator[Case]:
    """All methods and variants on the built-in graph; in a quick check on whole missing nodes only."""
    words = {name: (f"method={name}", *SHORT.get(name, ())) for name in choices("method")} | VARIANTS
    for name, own in words.items():
        for missing in MISSING[:1] if quick else MISSING:
            cell = compose(f"missing={missing}", *own)
            if cell.missing["pattern"] in build_method(cell.method).patterns:
                yield Case(name, missing, cell)


def compose(*words: str) -> Cell:
    """The cell of a command ``pagnn-bench run``, on the built-in graph unless the words say otherwise."""
    [config] = compose_combinations(["data=synthetic", *words])
    return Cell.from_config(config)
