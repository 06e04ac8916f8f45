"""Any torch_geometric dataset can be named in the configuration."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.sweep import compose_combinations
from pagnn_bench.data import load_graph
from pagnn_bench.data.pyg import dataset_class


@pytest.fixture
def load(tmp_path, data_config, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)

    def load_tiny(variant=None, **keys):
        keys = {"dataset": "tiny_dataset.Tiny", "args": {"name": variant} if variant else {}} | keys
        sizes = {"train_per_class": 3, "num_val": 10, "root": str(tmp_path)}
        return load_graph(data_config("pyg", **(sizes | keys)))

    return load_tiny


def test_features_links_and_labels_are_taken_over(load):
    graph = load()
    assert (graph.num_nodes, graph.num_features, graph.num_edges, graph.num_classes) == (40, 40, 40, 2)
    assert graph.split.sizes == (6, 10, 24)
    assert load("sparse").checksum == load("column").checksum == graph.checksum


def test_masks_are_used_if_they_are_one_dimensional(load):
    assert load("masks").split.sizes == load("masks", split="dataset").split.sizes == (4, 6, 25)
    assert load("masks", split="random").split.sizes == (6, 10, 24)
    assert load("many_masks").split.sizes == (6, 10, 24)


def test_nan_is_a_missing_attribute_or_a_missing_label(load):
    graph, node = load("gaps"), np.arange(40)
    np.testing.assert_array_equal(~graph.known, node[:, None] % 3 == node % 3)
    assert graph.features.nnz == 0  # the ones are on the diagonal, which is missing
    assert graph.labels.tolist() == [-1] * 4 + [k % 2 for k in range(4, 40)]


def test_names_tell_datasets_apart(load):
    assert load().name == "tiny_dataset.Tiny-default"
    assert load("masks").name == "tiny_dataset.Tiny-masks"
    assert load("masks", name="mine").name == "mine"


def test_every_dataset_has_a_folder_of_its_own_below_the_root(load, tmp_path):
    load()
    load("masks")
    folders = {folder.name for folder in (tmp_path / "pyg").iterdir()}
    assert folders == {"tiny_dataset.Tiny", "tiny_dataset.Tiny-name=masks"}


def test_a_dataset_without_files(load):
    graph = load(dataset="KarateClub", args={}, train_per_class=1)
    assert (graph.num_nodes, graph.num_edges, graph.num_classes) == (34, 78, 4)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"dataset": None}, "data.dataset=None: give the name of a class"),
        ({"dataset": "NoSuchDataset"}, "data.dataset=NoSuchDataset: give the name of a class"),
        ({"dataset": "no_such_module.Tiny"}, "give the name of a class"),
        ({"dataset": "tiny_dataset.torch"}, "cannot load it"),
        ({"args": None}, "data.args=None: give arguments by name"),
        ({"args": {"colour": "red"}}, "cannot load it .*colour"),
        ({"args": {"name": "broken"}}, "cannot load it .*ConnectionError: no network"),
        ({"args": {"name": "no_features"}}, "needs node features"),
        ({"args": {"name": "half"}}, "labels must be one integer per node"),
        ({"args": {"name": "multilabel"}}, "labels must be one integer per node"),
        ({"split": "dataset"}, "choose one of random, auto"),
    ],
)
def test_mistakes(load, keys, words):
    with pytest.raises(RequestError, match=words):
        load(**keys)


def test_a_heterophilous_graph_by_its_own_name(tmp_path):
    """A tiny substitute for the file that torch_geometric would download; we could not reach the real ones."""
    raw = tmp_path / "pyg/HeterophilousGraphDataset-name=Roman-empire/roman_empire/raw"
    raw.mkdir(parents=True)
    node = np.arange(60)
    parts = np.tile(node % 3, (10, 1))
    np.savez(
        raw / "roman_empire.npz",
        node_features=np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32),
        node_labels=node % 2,
        edges=np.stack([node, (node + 1) % 60], axis=1),
        train_masks=parts == 0,
        val_masks=parts == 1,
        test_masks=parts == 2,
    )
    keys = [f"data.root={tmp_path}", "data.num_val=10", "data.train_per_class=5"]
    (cell,) = compose_combinations(["data=roman_empire", *keys])
    graph = load_graph(cell["data"])
    assert (graph.name, graph.num_nodes, graph.num_edges, graph.split.sizes) == (
        "roman_empire",
        60,
        60,
        (10, 10, 40),
    )
    assert cell["data"]["standardise"] == "observed"


GRAPHLAND = (
    "hm_categories",
    "pokec_regions",
    "web_topics",
    "tolokers_2",
    "city_reviews",
    "artnet_exp",
    "web_fraud",
)
HETEROPHILOUS = ("roman_empire", "amazon_ratings", "minesweeper", "tolokers", "questions")


@pytest.mark.parametrize("name", [*GRAPHLAND, *HETEROPHILOUS])
def test_the_named_ones_are_such_as_torch_geometric_has(name):
    (cell,) = compose_combinations([f"data={name}"])
    kind = dataset_class(cell["data"]["dataset"])
    assert f'"{cell["data"]["args"]["name"]}"' in kind.__doc__
    inspect.signature(kind).bind("root", **cell["data"]["args"])
