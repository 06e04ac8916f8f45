"""A graph in two tables: every documented form is read, and every mistake gets its own message."""

from __future__ import annotations

import builtins
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import Cell
from pagnn_bench.data import load_graph

# Six people in a ring; b has no weight, c no colour, f no topic.
NODES = """id,weight,colour,smokes,topic
a,1.5,red,True,art
b,,blue,False,law
c,-2,,True,art
d,1e3,red,,law
007,4,green,False,law
f,5,blue,True,
"""
EDGES = "from,to,since\na,b,1\nb,c,2\nc,d,3\nd,007,4\n007,f,5\nf,a,6\na,b,7\n"
KEYS = {"label": "topic", "id": "id", "one_hot": ["colour"], "train_per_class": 1, "num_val": 1}


@pytest.fixture
def load(tmp_path, data_config):
    """Write both tables and load them; None is not written."""

    def write_and_load(nodes=NODES, edges=EDGES, ending=".csv", **keys):
        for key, text in (("nodes", nodes), ("edges", edges)):
            if text is not None:
                path = tmp_path / f"{key}{ending}"
                path.write_text(text)
                keys = {key: str(path)} | keys
        return load_graph(data_config("table", **(KEYS | keys)))

    return write_and_load


def with_gaps(graph) -> np.ndarray:
    """The features, NaN where missing."""
    return (
        graph.features.toarray()
        if graph.known is None
        else np.where(graph.known, graph.features.toarray(), np.nan)
    )


def test_the_graph_by_hand(load):
    graph, nan = load(), np.nan
    expected = [  # weight, smokes, then colour: blue, green, red
        [1.5, 1, 0, 0, 1],
        [nan, 0, 1, 0, 0],
        [-2, 1, nan, nan, nan],
        [1e3, nan, 0, 0, 1],
        [4, 0, 0, 1, 0],
        [5, 1, 1, 0, 0],
    ]
    np.testing.assert_array_equal(with_gaps(graph), np.array(expected, dtype=np.float32))
    assert graph.labels.tolist() == [0, 1, 0, 1, 1, -1]
    assert graph.num_edges == 6
    assert sorted(graph.adjacency[[0]].indices) == [1, 5]
    assert graph.split.drawn
    assert graph.split.sizes == (2, 1, 2)


def test_tabs_and_text_columns_found_by_themselves(load):
    expected = load().checksum
    assert load(NODES.replace(",", "\t"), EDGES.replace(",", "\t"), ".tsv").checksum == expected
    assert load(one_hot="auto").checksum == expected


def test_rows_counted_from_0_and_a_column_left_out(load):
    graph = load(edges="a,b\n0,1\n1,5\n", id=None, ignore=["id", "colour"], one_hot=[])
    assert (graph.num_features, graph.num_edges) == (2, 2)
    assert graph.adjacency[[1]].indices.tolist() == [0, 5]


def test_a_column_with_the_split(load):
    lines = NODES.splitlines()
    parts = ("part", "train", "test", "val", "train", "", "")
    graph = load("\n".join(f"{line},{part}" for line, part in zip(lines, parts)), part="part")
    assert [part.tolist() for part in (graph.split.train, graph.split.val, graph.split.test)] == [
        [0, 3],
        [2],
        [1],
    ]
    assert graph.num_features == 5
    assert not graph.split.drawn


def test_a_numeric_column_can_be_a_category(load):
    assert load(one_hot=["colour", "weight"]).num_features == 1 + 3 + 5


def test_graphml_is_both_tables_in_one(load, tmp_path, data_config):
    expected = load()
    graph = nx.Graph([("a", "b"), ("b", "c"), ("c", "d"), ("d", "007"), ("007", "f"), ("f", "a")])
    for row in pd.read_csv(tmp_path / "nodes.csv", dtype={"id": str}).to_dict("records"):
        graph.nodes[row["id"]].update({k: v for k, v in row.items() if k != "id" and not pd.isna(v)})
    path = tmp_path / "graph.graphml"
    nx.write_graphml(graph, path)
    found = load_graph(data_config("table", **(KEYS | {"nodes": str(path), "id": None})))
    order = [list(graph.nodes).index(name) for name in ("a", "b", "c", "d", "007", "f")]
    np.testing.assert_array_equal(with_gaps(found)[order][:, :2], with_gaps(expected)[:, :2])
    assert found.labels[order].tolist() == expected.labels.tolist()
    assert found.num_edges == 6


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"label": None},
            r"data.label: give the name of a column; .*nodes.csv has id, weight, colour, smokes, topic",
        ),
        ({"label": "subject"}, "data.label=subject: no such column; .* has id, weight"),
        ({"id": "key"}, "data.id=key: no such column"),
        ({"ignore": ["x"]}, "data.ignore=x: no such column"),
        ({"one_hot": ["x"]}, "data.one_hot=x: no such column"),
        ({"one_hot": "all"}, "data.one_hot=all: give a list of columns.* or auto"),
        ({"one_hot": []}, r"the column colour is text, such as red; encode it with data.one_hot=\[colour\]"),
        ({"ignore": ["weight", "colour", "smokes"], "one_hot": []}, "no column is left"),
        ({"nodes": NODES.replace("f,5", "a,5")}, "data.id=id: ids must be unique, but a occurs twice"),
        ({"nodes": NODES.replace("f,5", ",5")}, "data.id=id: 1 node without an id"),
        (
            {"nodes": NODES.replace("weight,colour", "weight,weight")},
            "data.nodes=.*: two columns have the name weight",
        ),
        ({"nodes": NODES + "g,1\n"}, "data.nodes=.*: line 8 has 2 fields, the first has 5"),
        ({"edges": "from,to\na,b\nc\n"}, "data.edges=.*: line 3 has 1 field, the first has 2"),
        (
            {"edges": "from,to\na,b\nx9,b\n7,c\n"},
            "2 of 6 ends name no node, such as x9; the ids are the column id of",
        ),
        ({"edges": "from,to\na,b\na,\n"}, "1 of 4 ends name no node, such as an empty cell"),
        (
            {"edges": "a,b\n0,6\n", "id": None, "ignore": ["id"]},
            "such as 6; the ids are the rows, counted from 0",
        ),
        (
            {"edges": "a,b\nb,c\n"},
            "the first line must name the columns, such as from,to, but a and b are nodes",
        ),
        (
            {"edges": "0,1\n1,2\n", "id": None, "ignore": ["id"]},
            "the first line must name the columns, .* but 0 and 1 are nodes",
        ),
        ({"edges": "from;to\na;b\n"}, "needs two columns .* found 1"),
        ({"edges": ""}, "data.edges=.*: cannot be read as a table"),
        ({"train_per_class": 3}, "data.train_per_class=3: class art has 2 labelled nodes"),
        (
            {"num_val": 4},
            "data.num_val=4 .* labelled nodes remain after the training nodes; ask for fewer",
        ),
        ({"part": "weight"}, "1.5 is not a part; use train, val, test or an empty cell"),
        ({"nodes": NODES.replace("1e3", "inf")}, "finite numbers, or NaN where missing"),
        ({"nodes": None}, "data.nodes: data=table needs a table of nodes"),
        ({"edges": None}, "data.edges: data=table needs a table of edges"),
        ({"ending": ".xlsx"}, "unknown ending; choose one of .csv, .tsv, .parquet"),
        ({"ending": ".graphml", "edges": None, "id": None}, "cannot be read as GraphML"),
    ],
)
def test_mistakes(load, changed, words):
    with pytest.raises(RequestError, match=words) as caught:
        load(**changed)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["id", "edges"])
def test_graphml_has_its_own_ids_and_edges(data_config, tmp_path, key):
    path, other = tmp_path / "graph.graphml", tmp_path / "edges.csv"
    nx.write_graphml(nx.path_graph(3), path)
    other.write_text("from,to\n0,1\n")
    with pytest.raises(RequestError, match=f"data.{key}=.*edges.csv: .*graphml already has edges and ids"):
        load_graph(data_config("table", nodes=str(path), label="topic", **{key: str(other)}))


def test_parquet_may_call_its_columns_as_nodes_are_called(load, tmp_path, monkeypatch):
    """Parquet always has column names; pandas numbers them, and rows have the same numbers."""
    expected = load(edges="from,to\n0,1\n1,2\n", id=None, ignore=["id"]).checksum
    monkeypatch.setattr(pd, "read_parquet", lambda content: pd.read_csv(content, dtype={"id": str}))
    changed = load(edges="0,1\n0,1\n1,2\n", id=None, ignore=["id"], ending=".parquet")
    assert changed.checksum == expected


def test_a_category_that_no_row_has_is_no_class(load, monkeypatch):
    """A Parquet file may list more categories than occur."""
    expected = load()

    def categorical(content):
        table = pd.read_csv(content, dtype={"id": str})
        return (
            table.assign(topic=pd.Categorical(table["topic"], ["art", "bio", "law"]))
            if "topic" in table
            else table
        )

    monkeypatch.setattr(pd, "read_parquet", categorical)
    found = load(ending=".parquet")
    assert (found.num_classes, found.checksum) == (2, expected.checksum)


def test_standardised_by_all_nodes(load):
    """The key is used later, once a mask is known; here it must not be refused."""
    assert load(standardise="observed").checksum == load().checksum


def test_all_attributes_empty(load):
    nodes = "id,weight,topic\n" + "".join(f"{name},,{name in 'abc'}\n" for name in "abcdef")
    with pytest.raises(RequestError, match="all attributes are missing"):
        load(nodes, "from,to\na,b\n", one_hot=[])


def test_parquet_goes_the_same_way(load, monkeypatch):
    """pandas reads the file; here it is actually a CSV file, so that the test does not need pyarrow."""
    expected = load().checksum

    def disguised(content):
        return pd.read_csv(content, dtype={"id": str})

    monkeypatch.setattr(pd, "read_parquet", disguised)
    assert load(ending=".parquet").checksum == expected


def test_parquet_without_pyarrow_says_what_to_install(load, monkeypatch):
    original = builtins.__import__

    def without(name, *rest):
        if name.startswith(("pyarrow", "fastparquet")):
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        RequestError, match=r"needs the package pyarrow: pip install 'pagnn-bench\[parquet\]'"
    ):
        load(ending=".parquet")


def test_real_parquet_files(load, tmp_path, data_config):
    pytest.importorskip("pyarrow")
    expected = load().checksum
    keys = {}
    for key in ("nodes", "edges"):
        keys[key] = str(tmp_path / f"{key}.parquet")
        pd.read_csv(tmp_path / f"{key}.csv", dtype={"id": str}).to_parquet(keys[key])
    assert load_graph(data_config("table", **(KEYS | keys))).checksum == expected


def test_a_cell_knows_its_tables_by_content_and_is_called_by_its_name(load, tmp_path, data_config):
    load()

    def cell(**keys) -> Cell:
        places = {key: str(tmp_path / f"{key}.csv") for key in ("nodes", "edges")} | keys
        named = {"name": "x"}
        data = data_config("table", **(KEYS | places))
        return Cell.from_config(
            {"method": named, "data": data, "missing": named, "protocol": named, "rate": 0}
        )

    first = cell()
    assert first.data["label"] == "table"
    assert first.identity["data"]["classes"] == "topic"
    assert not {"nodes", "edges"} & first.identity["data"].keys()
    assert not {"nodes", "edges"} & first.description()["data"].keys()
    (tmp_path / "moved.csv").write_bytes(Path(first.data["nodes"]).read_bytes())
    assert cell(nodes=str(tmp_path / "moved.csv")).hash == first.hash
    assert cell(label="colour").hash != first.hash
    (tmp_path / "edges.csv").write_text(EDGES + "a,c,8\n")
    assert cell().hash != first.hash
    with pytest.raises(RequestError, match="one of the files has changed"):
        load_graph(first.data)
