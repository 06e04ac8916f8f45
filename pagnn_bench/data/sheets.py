"""Tables from files: CSV, TSV, Parquet and GraphML, as pandas data frames."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.text import count, one_line

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")
EMPTY = ["", "NaN", "nan", "NA", "N/A", "null"]  # cells of a CSV file that mean nothing


def is_graphml(path: str) -> bool:
    """Whether a file holds both nodes and edges."""
    return PurePath(path).suffix.lower() == ".graphml"


def is_text(path: str) -> bool:
    """Whether a file is plain text, whose first line may lack the names of the columns."""
    return PurePath(path).suffix.lower() in SEPARATORS


def read_sheet(key: str, path: str, content: bytes, text: Sequence[str] | None) -> pd.DataFrame:
    """A table with a line of column names; empty cells are missing.

    Args:
        key: the key of ``data`` that names the file, for messages.
        path: the file as the user gave it; its ending gives the format.
        content: of the file.
        text: columns to keep as text, so that the id 007 is not 7; None for all columns.
    """
    import pandas as pd

    ending = PurePath(path).suffix.lower()
    try:
        if ending in SEPARATORS:
            _check_lines(key, path, content, SEPARATORS[ending])
            options = {"sep": SEPARATORS[ending], "keep_default_na": False}
            columns = pd.read_csv(io.BytesIO(content), nrows=0, **options).columns
            as_text = columns if text is None else columns.intersection(list(text))
            # In a column of ids only an empty cell is missing: NA may be an id.
            empty = {column: [""] if column in as_text else EMPTY for column in columns}
            types = dict.fromkeys(as_text, str)
            return pd.read_csv(io.BytesIO(content), dtype=types, na_values=empty, index_col=False, **options)
        if ending in PARQUET:
            table = pd.read_parquet(io.BytesIO(content))
            for column in table.columns if text is None else table.columns.intersection(list(text)):
                table[column] = table[column].astype("string").astype(object)
            return table
    except ImportError as error:
        raise RequestError(
            f"data.{key}={path}: Parquet needs the package pyarrow: pip install 'pagnn-bench[parquet]'."
        ) from error
    except (ValueError, OSError, csv.Error, pd.errors.ParserError) as error:  # includes pyarrow's errors
        raise RequestError(
            f"data.{key}={path}: cannot be read as a table ({one_line(str(error))})."
        ) from error
    endings = ", ".join([*SEPARATORS, *PARQUET, *([".graphml"] if key == "nodes" else [])])
    raise RequestError(f"data.{key}={path}: unknown ending; choose one of {endings}.")


def _check_lines(key: str, path: str, content: bytes, separator: str) -> None:
    """Refuse what pandas would repair without a word: two columns of one name, and lines cut short."""
    lines = csv.reader(io.StringIO(content.decode("utf-8-sig")), delimiter=separator)
    header = next(lines, [])
    if twice := [name for name, times in Counter(header).items() if times > 1]:
        raise RequestError(f"data.{key}={path}: two columns have the name {twice[0]}.")
    for fields in lines:
        if fields and len(fields) < len(header):
            raise RequestError(
                f"data.{key}={path}: line {lines.line_num} has {count(len(fields), 'field')}, "
                f"the first has {len(header)}."
            )


def read_graphml(path: str, content: bytes) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series]:
    """The nodes with their attributes, the edges, and the ids of the nodes of a GraphML file."""
    import networkx as nx
    import pandas as pd

    try:
        graph = nx.read_graphml(io.BytesIO(content))
    except Exception as error:  # a wrong file may make networkx raise anything
        reason = one_line(f"{type(error).__name__}: {error}")
        raise RequestError(f"data.nodes={path}: cannot be read as GraphML ({reason}).") from error
    ids = list(graph.nodes)
    nodes = pd.DataFrame([attributes for _, attributes in graph.nodes(data=True)], index=range(len(ids)))
    edges = pd.DataFrame([edge[:2] for edge in graph.edges], columns=["source", "target"], dtype=object)
    return nodes, edges, pd.Series(ids, dtype=object)
