"""The choice of a loader: ours by their short names, others by their paths."""

from __future__ import annotations

import pytest

from pagnn_bench import data
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.schema import whole
from pagnn_bench.data import Loader, load_graph


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        *(
            (
                name,
                f"data.source={name}: choose one of planetoid, amazon, spatial, synthetic, custom, table, pyg, or give",
            )
            for name in ("magic", 3, None)
        ),
        ("nowhere.RING", r"data.source=nowhere.RING: cannot be imported \(No module named 'nowhere'\)"),
        (
            "pagnn_bench.data.load_graph",
            "data.source=pagnn_bench.data.load_graph: this is not a pagnn_bench.data.Loader",
        ),
    ],
)
def test_unknown_source(data_config, source, sentence):
    with pytest.raises(RequestError, match=sentence):
        load_graph(data_config("cora", source=source))


def test_a_foreign_loader_reads_its_own_keys_only(data_config, monkeypatch):
    """Named by its path; keys it does not read are refused, as with our own."""
    keys = {"graph_seed": whole(0)}
    loader = Loader(
        lambda config: load_graph(data_config("synthetic", graph_seed=config["graph_seed"])), keys=keys
    )
    monkeypatch.setattr(data, "OTHER", loader, raising=False)
    split = ("name", "split", "split_seed", "train_per_class", "num_val", "num_test")
    usual = {key: data_config("synthetic")[key] for key in split}
    config = {**usual, "source": "pagnn_bench.data.OTHER", "graph_seed": 1}
    assert load_graph(config).checksum == load_graph(data_config("synthetic", graph_seed=1)).checksum
    with pytest.raises(RequestError, match=r"data.avg_degree: source pagnn_bench.data.OTHER has no such key"):
        load_graph({**config, "avg_degree": 5})
    with pytest.raises(RequestError, match=r"data.graph_seed=-1: give a whole number of at least 0"):
        load_graph({**config, "graph_seed": -1})
