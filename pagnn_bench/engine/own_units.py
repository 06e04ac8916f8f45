"""What a method filled in, in the units and under the names of the user's own file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from pagnn_bench.config.identity import Cell
from pagnn_bench.data import load_graph, read_raw
from pagnn_bench.data.component import largest_nodes
from pagnn_bench.data.raw import Names, encoding_of
from pagnn_bench.engine.prepare import MaskedCell
from pagnn_bench.missing.scale import Scale

Filled: TypeAlias = "sp.csr_array | np.ndarray"


@dataclass(frozen=True)
class Completed:
    """Attributes with missing entries filled in, as far as possible.

    Attributes:
        values: [n, d] in the units of the file; a category is its number. NaN where there is no answer: in a column
            that no training node shows, or where no category is likelier than the others.
        observed: bool [n, d], True where the method was given a value: there it is the file's own.
    """

    values: np.ndarray
    observed: np.ndarray

    @property
    def filled_in(self) -> int:
        return int((~self.observed & ~np.isnan(self.values)).sum())

    @property
    def left_empty(self) -> int:
        return int(np.isnan(self.values).sum())


def why_not_completed(masked: MaskedCell, filled: Filled | None) -> str:
    """The reason why there are no completed attributes; empty if there are."""
    name = masked.cell.method["name"]
    if masked.method.oracle:
        return f"{name} is shown the hidden attributes and fills in nothing"
    if filled is None:
        return f"{name} works without filling in attributes"
    if masked.protocol.feature_norm != "none":
        return (
            f"protocol.feature_norm={masked.protocol.feature_norm} divides every row by its sum, which is unknown for "
            "missing attributes; protocol.feature_norm=none keeps their units"
        )
    return ""


def in_own_units(masked: MaskedCell, filled: Filled) -> Completed:
    """Undo standardising and one-hot encoding; observed entries are taken from the file, not converted back.

    Args:
        masked: the cell on its mask.
        filled: X̂ [n, d'], as the network saw it.
    """
    data, observed = masked.cell.data, masked.graph.observed
    guess = (filled if isinstance(filled, np.ndarray) else filled.toarray()).astype(np.float64)
    if by := data.get("standardise"):
        loaded = replace(masked.loaded, split=masked.complete.split)
        guess = Scale.of(loaded, observed, by_all=by == "observed").undo(guess)
    given = observed.dense()
    values = np.where(given, masked.loaded.features.toarray(), guess)
    raw = read_raw(data)
    if raw is None:
        return Completed(values.astype(np.float32), given.copy())
    if (encoding := encoding_of(data, raw)) is not None:
        values, given = encoding.decode(values, given)
    own = raw.features.toarray() if sp.issparse(raw.features) else np.asarray(raw.features)
    if (kept := _kept_nodes(masked.cell)) is not None:
        own = own[kept]
    return Completed(np.where(given, own, values), given.copy())


def names_of(cell: Cell) -> Names:
    """What the user calls nodes, attributes and classes."""
    raw = read_raw(cell.data)
    names = Names() if raw is None else raw.names
    if (kept := _kept_nodes(cell)) is None:
        return names
    return replace(names, ids=[node if names.ids is None else names.ids[node] for node in kept.tolist()])


def _kept_nodes(cell: Cell) -> np.ndarray | None:
    """The nodes of the file that are in the graph, unless all are: ``protocol.component=largest``."""
    if cell.protocol.get("component", "all") == "all":
        return None
    return largest_nodes(load_graph(cell.data))
