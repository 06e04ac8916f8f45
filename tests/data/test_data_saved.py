"""A saved ``torch_geometric.data.Data`` is a graph; anything else in a pickle is refused, never run."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData

from pagnn_bench.config.errors import RequestError
from pagnn_bench.data import load_graph

NODE = torch.arange(30)
X = torch.where(
    torch.rand(30, 5, generator=torch.Generator().manual_seed(0)) < 0.3, torch.nan, torch.ones(30, 5)
)
RING = torch.stack([NODE, (NODE + 1) % 30])
GRAPH = Data(x=X, edge_index=RING, y=NODE % 2)
MASKS = {"train_mask": NODE < 4, "val_mask": (NODE >= 4) & (NODE < 10), "test_mask": NODE >= 15}


@pytest.fixture
def load(tmp_path, data_config):
    def save_and_load(data, name="graph.pt", **keys):
        torch.save(data, tmp_path / name)
        keys = {"path": str(tmp_path / name), "train_per_class": 3, "num_val": 10} | keys
        return load_graph(data_config("custom", **keys))

    return save_and_load


def test_a_data_with_gaps(load):
    graph = load(GRAPH)
    assert (graph.num_nodes, graph.num_edges, graph.num_classes) == (30, 30, 2)
    np.testing.assert_array_equal(graph.known, ~X.isnan().numpy())
    assert graph.split.sizes == (6, 10, 14)
    assert load(GRAPH.to_dict(), "other.pth").checksum == graph.checksum


def test_its_masks_are_a_split(load):
    masked = Data(**GRAPH.to_dict(), **MASKS)
    assert load(masked).split.sizes == load(masked, split="file").split.sizes == (4, 6, 15)
    assert load(masked, split="random").split.sizes == (6, 10, 14)


def test_columns_of_masks_are_no_split(load):
    """One column per split, as in the heterophilous datasets: none of them is *the* split of the file."""
    columns = {key: mask[:, None].expand(-1, 10) for key, mask in MASKS.items()}
    several = Data(**GRAPH.to_dict(), **columns)
    with pytest.raises(RequestError, match="several columns in its masks, one per split; "):
        load(several)
    assert load(several, split="random").split.sizes == (6, 10, 14)


def test_types_that_numpy_does_not_know(load):
    """bfloat16 and values with gradients, as a model may have left them."""
    odd = Data(x=X.bfloat16(), edge_index=RING, y=(NODE % 2).float().requires_grad_())
    assert load(odd, "odd.pt").checksum == load(GRAPH).checksum


def test_what_torch_allows_is_as_it_was_before(load):
    """Otherwise torch_geometric, which allows ``Data`` for good, would later read its own files the unsafe way."""
    before = set(torch.serialization.get_safe_globals())
    assert Data in before
    load(GRAPH)
    assert set(torch.serialization.get_safe_globals()) == before


class Evil:
    def __reduce__(self):
        return os.mkdir, ("was_run",)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (Data(x=X, y=NODE % 2), r"needs node features, links and labels \(x, edge_index, y\)"),
        (
            Data(x=X[:, 0], edge_index=RING, y=NODE % 2),
            r"x must be one row of numbers per node, found shape \[30\]",
        ),
        (Data(x=X, edge_index=RING, y=NODE[:-1] % 2), "30 rows of features do not match 29 labels"),
        (X, "holds a Tensor; save one torch_geometric Data"),
        (Evil(), r"cannot be loaded as a torch_geometric Data of plain tensors \(it holds posix.mkdir\)"),
        ({"x": X, "evil": Evil()}, r"torch_geometric Data of plain tensors \(it holds posix.mkdir\)"),
        (
            Data(x=X, edge_index=RING, y=NODE % 2, names=np.array(["a"])),
            r"plain tensors \(it holds numpy._core.multiarray._reconstruct, numpy.dtype, numpy.ndarray\)",
        ),
        (
            Data(x=[[1.0]] * 30, edge_index=RING, y=NODE % 2),
            "x must be one row of numbers per node, found a list",
        ),
        (Data(x=X, edge_index=RING.tolist(), y=NODE % 2), "edge_index must be a dense tensor, found a list"),
        (
            Data(x=X, edge_index=RING.float().to_sparse(), y=NODE % 2),
            "edge_index must be a dense tensor, found layout torch.sparse_coo",
        ),
        (Data(x=X, edge_index=RING, y=[0, 1] * 15), "y must be a dense tensor, found a list"),
        (Data(x=X, edge_index=RING, y=torch.tensor(1)), "labels must be one integer per node"),
        (Data(x=X, edge_index=RING, y=NODE[:0]), "labels must be classes counted from 0"),
        (
            Data(**GRAPH.to_dict(), train_mask=NODE < 4),
            "has only train_mask; a split needs train_mask, val_mask",
        ),
        (
            Data(**GRAPH.to_dict(), **MASKS | {"val_mask": [True] * 30}),
            "val_mask must be a dense tensor, found a list",
        ),
        ({1: X}, "holds a dict; save one torch_geometric Data"),
        (HeteroData(), "it holds .*torch_geometric.data.storage.BaseStorage"),
    ],
)
def test_mistakes(load, tmp_path, monkeypatch, content, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RequestError, match=words) as caught:
        load(content)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "was_run").exists()


@pytest.mark.parametrize("content", [b"", b"plain text", pickle.dumps({"x": np.ones(3)}, protocol=4)])
def test_no_file_of_torch(tmp_path, data_config, content, recwarn):
    (tmp_path / "odd.pt").write_bytes(content)
    with pytest.raises(RequestError, match=r"cannot be loaded .* \(it is not a file of torch.save\)"):
        load_graph(data_config("custom", path=str(tmp_path / "odd.pt")))
    assert not recwarn.list
