"""``data=table``: a graph of the user's own in a table of nodes and a table of edges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pagnn_bench.config.content import read_unchanged
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.schema import TEXT, Schema, Valid, or_null
from pagnn_bench.data.graph import Graph, Split
from pagnn_bench.data.raw import STANDARDISE, Names, RawGraph, finish
from pagnn_bench.data.sheets import is_graphml, is_text, read_graphml, read_sheet

if TYPE_CHECKING:
    import pandas as pd

PARTS = ("train", "val", "test")
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
    """Read both tables; a column with the parts of a split can be chosen as ``data.split=file``."""
    return finish(config, read_table(config))


def read_table(config: Mapping[str, Any]) -> RawGraph:
    """The graph as it is in the tables; categories are numbered."""
    nodes, edges, ids = _read(config)
    label = _column(config, nodes, "label", config["classes"])
    for key in ("ignore", "one_hot"):
        for column in config[key] if config[key] != "auto" else []:
            _column(config, nodes, key, column)
    others = {config["classes"], config["id"], config["part"], *config["ignore"]}
    attributes = nodes[[column for column in nodes.columns if column not in others]]
    features, categories = _features(config, attributes)
    labels, classes = _classes(label)
    called = Names(
        ids=list(ids),
        node=config["id"] or "node",
        columns=list(map(str, attributes.columns)),
        classes=classes,
        categories=categories,
    )
    return RawGraph(features, _ends(config, edges, ids), labels, splits=_splits(config, nodes), names=called)


def _read(config: Mapping[str, Any]) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series]:
    """(nodes, edges with the two ends as text, ids of the nodes as text)."""
    if not config["nodes"]:
        raise RequestError("data.nodes: data=table needs the table of the nodes, data.nodes=FILE.csv.")
    contents = read_unchanged(config)
    if is_graphml(config["nodes"]):
        for key in ("edges", "id"):
            if config[key]:
                raise RequestError(
                    f"data.{key}={config[key]}: {config['nodes']} has edges and ids of its own; leave this out."
                )
        return read_graphml(config["nodes"], contents["nodes"])
    if not config["edges"]:
        raise RequestError("data.edges: data=table needs the table of the edges, data.edges=FILE.csv.")
    key = config["id"]
    nodes = read_sheet("nodes", config["nodes"], contents["nodes"], text=[key] if key else [])
    edges = read_sheet("edges", config["edges"], contents["edges"], text=None)
    if edges.shape[1] < 2:
        raise RequestError(
            f"data.edges={config['edges']}: two columns name the ends of an edge, found {edges.shape[1]}."
        )
    ids = nodes.index.astype(str).to_series(index=nodes.index) if key is None else _ids(config, nodes, key)
    # A list of edges often comes without names of columns; its first edge would be lost without a word.
    first = edges.columns[:2]
    if is_text(config["edges"]) and first.isin(ids).all():
        raise RequestError(
            f"data.edges={config['edges']}: the first line has to name the columns, such as from,to, "
            f"but {first[0]} and {first[1]} are nodes."
        )
    return nodes, edges, ids


def _ids(config: Mapping[str, Any], nodes: pd.DataFrame, key: str) -> pd.Series:
    ids = _column(config, nodes, "id", key)
    if ids.isna().any():
        raise RequestError(f"data.id={key}: {int(ids.isna().sum())} nodes have no id.")
    if (twice := ids[ids.duplicated()]).size:
        raise RequestError(f"data.id={key}: ids must differ, but {twice.iloc[0]} stands there twice.")
    return ids


def _column(config: Mapping[str, Any], nodes: pd.DataFrame, key: str, column: str | None) -> pd.Series:
    if column is None or column not in nodes.columns:
        what = "no column is named" if column is None else "there is no such column"
        has = ", ".join(map(str, nodes.columns))
        given = "" if column is None else f"={column}"
        raise RequestError(f"data.{key}{given}: {what}; {config['nodes']} has {has}.")
    return nodes[column]


def _ends(config: Mapping[str, Any], edges: pd.DataFrame, ids: pd.Series) -> np.ndarray:
    """``[2, E]``: the rows of the nodes that the ends of the edges name."""
    import pandas as pd

    places = pd.Series(np.arange(len(ids)), index=pd.Index(ids.to_numpy()))
    names = edges.iloc[:, :2].to_numpy().T  # [2, E]
    found = places.reindex(names.ravel()).to_numpy()
    if (lost := np.isnan(found)).any():
        where = f"the column {config['id']} of" if config["id"] else "the rows, counted from 0, of"
        example = names.ravel()[lost][0]
        raise RequestError(
            f"data.edges={config['edges']}: {int(lost.sum())} of {lost.size} ends name no node, such as "
            f"{'an empty cell' if pd.isna(example) else example}; the ids are {where} {config['nodes']}."
        )
    return found.astype(np.int64).reshape(2, -1)


def _classes(label: pd.Series) -> tuple[np.ndarray, list[Any]]:
    """(``[n]``: classes in the order of their names, -1 where the cell is empty; these names)."""
    import pandas as pd

    classes = pd.Categorical(label).remove_unused_categories()  # Parquet knows categories that no row has
    return np.asarray(classes.codes, dtype=np.int64), classes.categories.tolist()


def _features(config: Mapping[str, Any], attributes: pd.DataFrame) -> tuple[np.ndarray, dict[int, list[Any]]]:
    """(``[n, d]`` float64 with NaN for empty cells and codes for categories; the categories' names by column)."""
    import pandas as pd

    if attributes.shape[1] == 0:
        raise RequestError(f"data.nodes={config['nodes']}: no column is left for the attributes.")
    asked, columns = config["one_hot"], []
    categories: dict[int, list[Any]] = {}
    for place, (name, column) in enumerate(attributes.items()):
        text = not pd.api.types.is_numeric_dtype(column)
        if text and column.dropna().isin((True, False)).all():  # empty, or true and false with empty cells
            column, text = column.astype(float), False
        if name in asked if asked != "auto" else text:
            values = pd.Categorical(column)
            codes = values.codes.astype(float)
            columns.append(np.where(codes < 0, np.nan, codes))
            categories[place] = values.categories.tolist()
        elif text:
            example = column.dropna().iloc[0]
            raise RequestError(
                f"data.nodes={config['nodes']}: the column {name} is text, such as {example}; encode it with "
                f"data.one_hot=[{name}] (or auto), or leave it out with data.ignore=[{name}]."
            )
        else:
            columns.append(column.to_numpy(dtype=float, na_value=np.nan))
    return np.column_stack(columns), categories


def _splits(config: Mapping[str, Any], nodes: pd.DataFrame) -> dict[str, Callable[[], Split]]:
    """The split that the column ``data.part`` tells, if there is one."""
    if not config["part"]:
        return {}
    part = _column(config, nodes, "part", config["part"])
    if not (known := part.isna() | part.isin(PARTS)).all():
        odd = part[~known].iloc[0]
        raise RequestError(
            f"data.part={config['part']}: the parts are {', '.join(PARTS)} or an empty cell, found {odd}."
        )
    return {"file": lambda: Split(*(np.flatnonzero(part == each) for each in PARTS))}
