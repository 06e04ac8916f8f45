"""``data=table``: the user's own graph in a table of nodes and a table of edges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pagnn_bench.config.content import read_unchanged
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.schema import TEXT, Schema, Valid, or_null
from pagnn_bench.config.text import count
from pagnn_bench.data.graph import Graph, Split
from pagnn_bench.data.raw import STANDARDISE, Names, RawGraph, finish
from pagnn_bench.data.sheets import is_graphml, is_text, read_graphml, read_sheet

if TYPE_CHECKING:
    import pandas as pd

PARTS = ("train", "val", "test")
ODD_CELLS = 0.1  # a column with a smaller share of cells that are no numbers was meant as numbers
_COLUMNS = Valid(
    lambda value: isinstance(value, list) and all(isinstance(column, str) for column in value),
    "give a list of columns, such as [colour,size]",
)
_FILE = or_null(TEXT)
TABLE_KEYS: Schema = {
    "nodes": _FILE,
    "edges": _FILE,
    "classes": or_null(TEXT),
    "id": or_null(TEXT),
    "part": or_null(TEXT),
    "ignore": _COLUMNS,
    "standardise": STANDARDISE,
    "one_hot": Valid(
        lambda value: value == "auto" or _COLUMNS.accepts(value), f"{_COLUMNS.choices}, or auto"
    ),
}


def load_table(config: Mapping[str, Any]) -> Graph:
    """Read both tables; ``data.split=file`` takes the split from the column ``data.part``."""
    return finish(config, read_table(config))


def read_table(config: Mapping[str, Any]) -> RawGraph:
    """The graph as in the tables, with numbered categories."""
    nodes, edges, ids = _read(config)
    label = _column(config, nodes, "label", config["classes"])
    for key in ("ignore", "one_hot"):
        for column in config[key] if config[key] != "auto" else []:
            _column(config, nodes, key, column)
    others = {config["classes"], config["id"], config["part"], *config["ignore"]}
    attributes = nodes[[column for column in nodes.columns if column not in others]]
    features, categories = _features(config, attributes)
    labels, classes = _classes(label)
    names = Names(
        ids=list(ids),
        node=config["id"] or "node",
        columns=list(map(str, attributes.columns)),
        classes=classes,
        categories=categories,
    )
    return RawGraph(features, _ends(config, edges, ids), labels, splits=_splits(config, nodes), names=names)


def _read(config: Mapping[str, Any]) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series]:
    """The nodes, the edges with both ends as text, and the ids of the nodes as text."""
    if not config["nodes"]:
        raise RequestError("data.nodes: data=table needs a table of nodes, data.nodes=FILE.csv.")
    contents = read_unchanged(config)
    if is_graphml(config["nodes"]):
        for key in ("edges", "id"):
            if config[key]:
                raise RequestError(
                    f"data.{key}={config[key]}: {config['nodes']} already has edges and ids; leave this out."
                )
        return read_graphml(config["nodes"], contents["nodes"])
    if not config["edges"]:
        raise RequestError("data.edges: data=table needs a table of edges, data.edges=FILE.csv.")
    key = config["id"]
    nodes = read_sheet("nodes", config["nodes"], contents["nodes"], text=[key] if key else [])
    edges = read_sheet("edges", config["edges"], contents["edges"], text=None)
    if edges.shape[1] < 2:
        raise RequestError(
            f"data.edges={config['edges']}: needs two columns with the ends of the edges, found {edges.shape[1]}."
        )
    ids = nodes.index.astype(str).to_series(index=nodes.index) if key is None else _ids(config, nodes, key)
    # Lists of edges often lack column names; the first edge would be lost silently.
    first = edges.columns[:2]
    if is_text(config["edges"]) and first.isin(ids).all():
        raise RequestError(
            f"data.edges={config['edges']}: the first line must name the columns, such as from,to, but {first[0]} "
            f"and {first[1]} are nodes."
        )
    return nodes, edges, ids


def _ids(config: Mapping[str, Any], nodes: pd.DataFrame, key: str) -> pd.Series:
    ids = _column(config, nodes, "id", key)
    if ids.isna().any():
        raise RequestError(f"data.id={key}: {count(int(ids.isna().sum()), 'node')} without an id.")
    if (twice := ids[ids.duplicated()]).size:
        raise RequestError(f"data.id={key}: ids must be unique, but {twice.iloc[0]} occurs twice.")
    return ids


def _column(config: Mapping[str, Any], nodes: pd.DataFrame, key: str, column: str | None) -> pd.Series:
    if column is None or column not in nodes.columns:
        what = "give the name of a column" if column is None else "no such column"
        has = ", ".join(map(str, nodes.columns))
        given = "" if column is None else f"={column}"
        raise RequestError(f"data.{key}{given}: {what}; {config['nodes']} has {has}.")
    return nodes[column]


def _ends(config: Mapping[str, Any], edges: pd.DataFrame, ids: pd.Series) -> np.ndarray:
    """``[2, E]``: the row numbers of the nodes at the ends of the edges."""
    import pandas as pd

    places = pd.Series(np.arange(len(ids)), index=pd.Index(ids.to_numpy()))
    names = edges.iloc[:, :2].to_numpy().T  # [2, E]
    found = places.reindex(names.ravel()).to_numpy()
    if (unknown := np.isnan(found)).any():
        where = f"the column {config['id']} of" if config["id"] else "the rows, counted from 0, of"
        example = names.ravel()[unknown][0]
        raise RequestError(
            f"data.edges={config['edges']}: {int(unknown.sum())} of {unknown.size} ends name no node, such as "
            f"{'an empty cell' if pd.isna(example) else example}; the ids are {where} {config['nodes']}."
        )
    return found.astype(np.int64).reshape(2, -1)


def _classes(label: pd.Series) -> tuple[np.ndarray, list[Any]]:
    """Classes ``[n]`` in the order of their names, -1 for an empty cell; and these names."""
    import pandas as pd

    classes = pd.Categorical(label).remove_unused_categories()  # Parquet may list categories without rows
    return np.asarray(classes.codes, dtype=np.int64), classes.categories.tolist()


def _features(config: Mapping[str, Any], attributes: pd.DataFrame) -> tuple[np.ndarray, dict[int, list[Any]]]:
    """Features ``[n, d]``, float64, with NaN for empty cells and codes for categories; their names by column."""
    import pandas as pd

    if attributes.shape[1] == 0:
        raise RequestError(f"data.nodes={config['nodes']}: no column is left for attributes.")
    one_hot, columns = config["one_hot"], []
    categories: dict[int, list[Any]] = {}
    for place, (name, column) in enumerate(attributes.items()):
        is_text = not pd.api.types.is_numeric_dtype(column)
        if is_text and column.dropna().isin((True, False)).all():  # empty, or booleans with empty cells
            column, is_text = column.astype(float), False
        if is_text and one_hot == "auto":
            _refuse_nearly_numbers(config, name, column)
        if is_text if one_hot == "auto" else name in one_hot:
            values = pd.Categorical(column)
            codes = values.codes.astype(float)
            columns.append(np.where(codes < 0, np.nan, codes))
            categories[place] = values.categories.tolist()
        elif is_text:
            example = column.dropna().iloc[0]
            raise RequestError(
                f"data.nodes={config['nodes']}: the column {name} is text, such as {example}; encode it with "
                f"data.one_hot=[{name}] (or auto), or leave it out with data.ignore=[{name}]."
            )
        else:
            columns.append(column.to_numpy(dtype=float, na_value=np.nan))
    return np.column_stack(columns), categories


def _refuse_nearly_numbers(config: Mapping[str, Any], name: Any, column: pd.Series) -> None:
    """Refuse a column of numbers with a few cells that are none, which would turn every number into a category."""
    import pandas as pd

    filled = column.dropna()
    odd = filled[pd.to_numeric(filled, errors="coerce").isna()]
    if len(odd) < ODD_CELLS * len(filled):
        raise RequestError(
            f"data.nodes={config['nodes']}: the column {name} has numbers except in {count(len(odd), 'cell')}, such as "
            f"{odd.iloc[0]}; correct them, or name the columns of categories in data.one_hot=[...]."
        )


def _splits(config: Mapping[str, Any], nodes: pd.DataFrame) -> dict[str, Callable[[], Split]]:
    """The split in the column ``data.part``, if given."""
    if not config["part"]:
        return {}
    part = _column(config, nodes, "part", config["part"])
    if not (known := part.isna() | part.isin(PARTS)).all():
        odd = part[~known].iloc[0]
        raise RequestError(
            f"data.part={config['part']}: {odd} is not a part; use {', '.join(PARTS)} or an empty cell."
        )
    return {"file": lambda: Split(*(np.flatnonzero(part == each) for each in PARTS))}
