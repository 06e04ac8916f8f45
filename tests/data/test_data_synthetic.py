"""The built-in graph is a function of its keys and has the requested statistics."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from pagnn_bench.config.errors import RequestError
from pagnn_bench.data import load_graph

# Changes only if numpy changes a random stream: then records of data=synthetic are of another graph.
DEFAULT_CHECKSUM = "4e6f9f4355cfd05bd97582823132f77486603d032d328ff4cfc76783a625c80e"


@pytest.fixture
def make(data_config):
    return lambda **keys: load_graph(data_config("synthetic", **keys))


def nearest_centroid(graph, x) -> float:
    """Test accuracy of the simplest classifier: cosine similarity to the mean of each class."""
    x = np.asarray(x)
    labels, train, test = graph.labels, graph.split.train, graph.split.test
    centroids = np.stack([x[train][labels[train] == c].mean(0) for c in range(graph.num_classes)])
    centroids /= np.linalg.norm(centroids, axis=1, keepdims=True) + 1e-9
    return float(((x[test] @ centroids.T).argmax(1) == labels[test]).mean())


def with_self(graph):
    return graph.adjacency + sparse.eye_array(graph.num_nodes)


def test_the_default_graph_is_always_the_same(make):
    assert make().checksum == make().checksum == DEFAULT_CHECKSUM


def test_the_seed_makes_another_graph(make):
    assert make(graph_seed=1).checksum != DEFAULT_CHECKSUM


@pytest.mark.parametrize("homophily", [0.0, 0.35, 1.0])
def test_edges_and_homophily_are_exact(make, homophily):
    graph = make(num_nodes=700, avg_degree=6, homophily=homophily)
    assert graph.num_edges == 2100
    source, target = graph.adjacency.nonzero()
    inside = (graph.labels[source] == graph.labels[target]).mean()
    assert inside == pytest.approx(homophily)


def test_degrees_vary_as_asked(make):
    even, uneven = (
        make(num_nodes=3000, avg_degree=10, degree_spread=spread).adjacency.sum(axis=1) for spread in (0, 1)
    )
    assert even.mean() == uneven.mean() == 10
    assert even.std() == pytest.approx(np.sqrt(10), rel=0.1)  # Poisson
    assert uneven.std() > 3 * even.std()


def test_words_are_binary_and_follow_the_topic(make):
    graph = make(num_nodes=4000, words_per_node=12, word_signal=0.3)
    assert set(graph.features.data) == {1.0}
    words = graph.features.sum(axis=1)
    assert words.min() >= 1
    assert words.mean() == pytest.approx(11.5, abs=0.5)
    node, word = graph.features.nonzero()
    on_topic = (word % graph.num_classes == graph.labels[node]).mean()
    assert on_topic == pytest.approx(0.3 + 0.7 / 7, abs=0.02)


def test_every_class_and_uneven_vocabulary_is_covered(make):
    graph = make(num_features=10, num_classes=7, word_signal=1.0)
    node, word = graph.features.nonzero()
    assert set(word) == set(range(10))
    assert (word % 7 == graph.labels[node]).all()


def test_neighbours_help(make):
    graph = make()
    own = nearest_centroid(graph, graph.features.toarray())
    smoothed = nearest_centroid(graph, (with_self(graph) @ with_self(graph) @ graph.features).toarray())
    assert 0.4 < own < smoothed - 0.1


@pytest.mark.parametrize("rate", [0.5, 0.7, 0.9])
def test_the_mean_of_known_neighbours_beats_filling_in(make, rate):
    """Two rounds of averaging over neighbours; the first knows which rows are missing or gets filled-in values."""
    graph = make()
    links = with_self(graph)
    degree = links.sum(axis=1)[:, None]
    scores = []
    for mask in range(5):
        observed = np.random.default_rng(mask).random((graph.num_nodes, 1)) >= rate
        x = graph.features.toarray() * observed
        filled = np.where(observed, x, x.sum(axis=0) / observed.sum())
        first_rounds = (
            links @ x / np.maximum(links @ observed, 1),
            links @ x / degree,
            links @ filled / degree,
        )
        scores.append([nearest_centroid(graph, links @ first / degree) for first in first_rounds])
    partial, zero, mean = np.mean(scores, axis=0)
    assert partial > zero + 0.02
    assert partial > mean + 0.05


def test_memory_grows_with_edges_not_with_nodes_squared(make):
    tracemalloc.start()
    graph = make(num_nodes=50_000, num_features=5000, avg_degree=10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert graph.num_edges == 250_000
    assert peak < 200e6  # a dense 50,000 x 5,000 matrix of bytes is 250 MB


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_nodes", -5),
        ("num_nodes", 13),
        ("num_classes", 1),
        ("num_features", 6),
        ("avg_degree", -1),
        ("avg_degree", float("nan")),
        ("homophily", 2),
        ("degree_spread", -0.1),
        ("words_per_node", 0),
        ("words_per_node", 10**30),
        ("word_signal", 1.1),
        ("word_signal", "high"),
        ("graph_seed", -1),
        ("split", "public"),
    ],
)
def test_a_wrong_value_names_its_key(make, key, value):
    with pytest.raises(RequestError, match=f"data.{key}={value}: "):
        make(**{key: value})


def test_more_edges_than_pairs_is_refused(make):
    with pytest.raises(RequestError, match=r"data.avg_degree=50: too many edges"):
        make(num_nodes=40, avg_degree=50, homophily=0.5)
    with pytest.raises(RequestError, match=r"data.avg_degree=1e\+09: too many edges"):
        make(avg_degree=1e9)  # at once, and in little memory
