"""The user's own file is read in every documented form, and every mistake in it gets its own message."""

from __future__ import annotations

import hashlib
import zipfile

import numpy as np
import pytest
from scipy import sparse

from pagnn_bench.config.errors import RequestError
from pagnn_bench.data import load_graph

RNG = np.random.default_rng(0)
FEATURES = (RNG.random((60, 8)) < 0.3).astype(np.float32)
EDGES = RNG.integers(60, size=(2, 100))
LABELS = np.arange(60) % 3
LABELS[-4:] = -1
SPLIT = {"train_idx": np.arange(6), "val_idx": np.arange(6, 20), "test_idx": np.arange(20, 50)}
CSR = sparse.csr_array(FEATURES)
SPARSE = {
    "features_data": CSR.data,
    "features_indices": CSR.indices,
    "features_indptr": CSR.indptr,
    "features_shape": np.array(CSR.shape),
}
DENSE = {"features": FEATURES, "edges": EDGES, "labels": LABELS}


@pytest.fixture
def load(tmp_path, data_config):
    """Save the arrays (a None drops one) and load the file."""

    def save_and_load(arrays, **keys):
        path = tmp_path / "mine.npz"
        np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
        keys = {"path": str(path), "train_per_class": 3, "num_val": 10} | keys
        return load_graph(data_config("custom", **keys))

    return save_and_load


def test_dense_sparse_and_transposed_files_are_the_same_graph(load):
    graph = load(DENSE)
    assert (graph.num_nodes, graph.num_features, graph.num_classes) == (60, 8, 3)
    assert graph.split.sizes == (9, 10, 37)
    assert load({**DENSE, **SPARSE, "features": None}).checksum == graph.checksum
    assert load({**DENSE, "edges": EDGES.T}).checksum == graph.checksum


def test_a_split_in_the_file_is_preferred_and_can_be_overruled(load):
    assert load({**DENSE, **SPLIT}).split.sizes == (6, 14, 30)
    assert load({**DENSE, **SPLIT}, split="file").split.sizes == (6, 14, 30)
    assert load({**DENSE, **SPLIT}, split="random").split.sizes == (9, 10, 37)


def test_a_graph_without_edges(load):
    assert load({**DENSE, "edges": np.empty((0, 2), dtype=int)}).num_edges == 0


GAPS = RNG.random(FEATURES.shape) < 0.4
MASK = sparse.csr_array(~GAPS)
SPARSE_MASK = {
    "observed_data": MASK.data,
    "observed_indices": MASK.indices,
    "observed_indptr": MASK.indptr,
    "observed_shape": np.array(MASK.shape),
}


def test_missing_entries_as_nan_or_by_a_mask_are_the_same_graph(load):
    graph = load({**DENSE, "features": np.where(GAPS, np.nan, FEATURES)})
    np.testing.assert_array_equal(graph.known, ~GAPS)
    np.testing.assert_array_equal(graph.features.toarray(), np.where(GAPS, 0, FEATURES))
    assert graph.natural_share == pytest.approx(GAPS.mean())
    assert graph.checksum != load(DENSE).checksum
    csr = {**DENSE, **SPARSE, "features": None}
    for senseless in (1e9, np.inf, 0):  # the value at a missing entry does not matter
        spoiled = np.where(GAPS, senseless, FEATURES)
        assert load({**DENSE, "features": spoiled, "observed": ~GAPS}).checksum == graph.checksum
        assert load({**DENSE, "features": spoiled, **SPARSE_MASK}).checksum == graph.checksum
    assert load({**csr, "observed": (~GAPS).astype(np.int8)}).checksum == graph.checksum
    assert load({**csr, **SPARSE_MASK}).checksum == graph.checksum


def test_a_mask_without_gaps_is_no_mask(load):
    graph = load({**DENSE, "observed": np.ones(FEATURES.shape, dtype=bool)})
    assert graph.known is None
    assert graph.checksum == load(DENSE).checksum


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_categories_become_columns_of_0_and_1(load, form):
    """Column 1 has the values 0, 5 and 7, and a gap."""
    features = FEATURES.copy()
    features[:, 1] = np.resize([5, 0, 7], 60)
    features[3, 1] = np.nan
    matrix = sparse.csr_array(features)
    parts = (matrix.data, matrix.indices, matrix.indptr, np.array(matrix.shape))
    arrays = (
        {**DENSE, "features": features}
        if form == "dense"
        else {**DENSE, **dict(zip(SPARSE, parts)), "features": None}
    )
    graph = load(arrays, one_hot=[1])
    assert graph.num_features == 7 + 3
    np.testing.assert_array_equal(graph.features.toarray()[:, :7], np.delete(FEATURES, 1, axis=1))
    np.testing.assert_array_equal(
        graph.features.toarray()[:4, 7:], [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]]
    )
    np.testing.assert_array_equal(np.argwhere(~graph.known), [[3, 7], [3, 8], [3, 9]])


def test_a_masked_category_is_no_category(load):
    features, observed = FEATURES.copy(), np.ones(FEATURES.shape, dtype=bool)
    features[3, 1], observed[3, 1] = 1e9, False
    graph = load({**DENSE, "features": features, "observed": observed}, one_hot=[1])
    assert graph.num_features == 7 + 2
    np.testing.assert_array_equal(np.argwhere(~graph.known), [[3, 7], [3, 8]])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"observed": ~GAPS[:, 1:]}, r"features have shape \[60, 8\], but observed has \[60, 7\]"),
        ({"observed": FEATURES + 1}, "observed must be true or false for every attribute"),
        ({"observed": ~GAPS[0]}, "observed must be true or false for every attribute"),
        ({"observed": np.zeros(FEATURES.shape, dtype=bool)}, "all attributes are missing"),
        ({**SPARSE_MASK, "observed_shape": np.array([3, 3])}, "observed_data, .* do not form a CSR matrix"),
        (
            {"observed_mask": ~GAPS},
            "the key observed_mask has no meaning here; the keys are features, observed, edges",
        ),
        (
            {"train_mask": LABELS == 0},
            "the key train_mask has no meaning here; .* train_idx, val_idx, test_idx",
        ),
        ({"features": None}, "the key features is missing; the file has edges, labels"),
        ({"edges": None}, "the key edges is missing"),
        ({"labels": np.minimum(LABELS, 0)}, "all labelled nodes have the same class"),
        (
            {"labels": np.where(LABELS < 0, -1, LABELS + 1)},
            "class 0 has no nodes",
        ),
        ({"labels": None}, "the key labels is missing"),
        ({"labels": np.where(LABELS < 0, np.nan, LABELS)}, "labels must be one integer per node"),
        ({"labels": LABELS[:, None]}, "labels must be one integer per node"),
        ({"labels": LABELS[:-1]}, "60 rows of features do not match 59 labels"),
        ({"features": np.where(FEATURES > 0, np.inf, 0)}, "finite"),
        ({"features": np.full(FEATURES.shape, np.nan)}, "all attributes are missing"),
        ({"features": FEATURES.astype(str)}, "features must be one row of numbers per node"),
        ({"features": FEATURES[0]}, "features must be one row of numbers per node"),
        ({"features": FEATURES.astype(object)}, "plain arrays .*allow_pickle=False"),
        ({"edges": EDGES + 1}, "but the nodes are 0 to 59"),
        ({"edges": np.zeros((3, 3), dtype=int)}, r"shape \[3, 3\]"),
        ({"edges": EDGES.astype(float)}, "integer node indices"),
        (SPLIT | {"val_idx": np.arange(5, 20)}, "disjoint"),
        (SPLIT | {"val_idx": None}, "the key val_idx is missing"),
        (SPLIT | {"test_idx": np.array([59])}, "no label"),
        (SPARSE | {"features_indices": CSR.indices + 1}, "do not form a CSR matrix"),
        (SPARSE | {"features_indptr": CSR.indptr[::-1]}, "do not form a CSR matrix"),
        (SPARSE | {"features_shape": np.array([61, 8])}, "do not form a CSR matrix"),
        (SPARSE | {"features_shape": None}, "the key features_shape is missing"),
    ],
)
def test_mistakes_in_the_file(load, changed, words):
    with pytest.raises(RequestError, match=words) as caught:
        load(DENSE | changed)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"one_hot": [8]}, "has no column 8, only 0 to 7"),
        ({"one_hot": ["a"]}, r"give a list of columns, counted from 0"),
        ({"standardise": "yes"}, "choose true, false or observed"),
    ],
)
def test_wrong_keys(load, keys, words):
    with pytest.raises(RequestError, match=words):
        load(DENSE, **keys)


def test_a_file_of_settings_from_before_these_keys(load, tmp_path, data_config):
    graph = load(DENSE)
    old = data_config("custom", path=str(tmp_path / "mine.npz"), train_per_class=3, num_val=10)
    del old["standardise"], old["one_hot"]
    assert load_graph(old).checksum == graph.checksum


def test_a_split_that_is_not_there(load):
    with pytest.raises(RequestError, match=r"data.split=file: choose one of random, auto"):
        load(DENSE, split="file")


@pytest.mark.parametrize("content", [b"", b"plain text", b"PK\x03\x04 truncated"])
def test_not_an_archive(tmp_path, data_config, content):
    (tmp_path / "odd.npz").write_bytes(content)
    with pytest.raises(RequestError, match=r"not an \.npz file"):
        load_graph(data_config("custom", path=str(tmp_path / "odd.npz")))


def test_a_member_that_is_no_array(tmp_path, data_config):
    path = tmp_path / "mine.npz"
    np.savez(path, **{key: value for key, value in DENSE.items() if key != "features"})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("features.npy", "some text")
    with pytest.raises(RequestError, match="features is not an array"):
        load_graph(data_config("custom", path=str(path)))


def test_a_flipped_byte_inside_the_archive(tmp_path, data_config):
    path = tmp_path / "mine.npz"
    np.savez_compressed(path, **DENSE)
    content = bytearray(path.read_bytes())
    content[100] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(RequestError, match="cannot be read as plain arrays"):
        load_graph(data_config("custom", path=str(path)))


def test_no_path_and_no_file(tmp_path, data_config):
    with pytest.raises(RequestError, match=r"data=custom needs the path"):
        load_graph(data_config("custom"))
    with pytest.raises(RequestError, match="no such file"):
        load_graph(data_config("custom", path=str(tmp_path / "absent.npz")))


def test_a_file_that_changed_since_it_was_identified(load, tmp_path):
    load(DENSE)
    content = hashlib.sha256((tmp_path / "mine.npz").read_bytes()).hexdigest()
    assert load(DENSE, content=content).num_nodes == 60
    with pytest.raises(RequestError, match="has changed"):
        load({**DENSE, "labels": np.zeros(60, dtype=int)}, content=content)
