"""What a check trains: every method, and other networks behind a filling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pagnn_bench.config.catalogue import choices
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.sweep import compose_combinations
from pagnn_bench.methods import build_method

# Learned preparations just long enough to use all of their operations, since rounding grows with every step.
SHORT: dict[str, tuple[str, ...]] = {
    "vae": ("method.epochs=5",),
    "gain": ("method.iterations=20",),
    "sat": ("method.epochs=3",),
    "fsdcap": ("method.num_iterations=20", "method.classifier_epochs=5"),
}
# Foreign modules draw dropout from torch's global generators, which differ between devices.
NO_DROPOUT = "method.dropout=0"
VARIANTS: dict[str, tuple[str, ...]] = {
    "module": ("method=module", NO_DROPOUT),
    "mf, GraphSAGE": ("method=mf", "method.network=sage", NO_DROPOUT),
    "mf, GAT": ("method=mf", "method.network=gat", NO_DROPOUT),
}
MISSING = ("type1", "type2")

# A graph without download of AmaComp's size: nodes, undirected edges, features, 267 words per node.
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
    """A method with a missing type; ``name`` is shown in tables."""

    name: str
    missing: str
    cell: Cell


def every_method(quick: bool) -> Iterator[Case]:
    """All methods and variants on the built-in graph; a quick check has whole missing nodes only."""
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
