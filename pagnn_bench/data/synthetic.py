"""``data=synthetic``: a seeded random graph with planted communities.

Links follow a degree-corrected stochastic block model: a node is drawn with a probability proportional to its
own log-normal weight, its neighbour inside its class (``homophily`` of the edges) or outside it.
Words follow a topic model: a token comes from the topic of the node's class with probability ``word_signal``,
else from a background in which low-numbered words are more frequent; a word drawn twice counts once.
Memory grows with the number of edges and words, never with n x n or n x d.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from pagnn_bench.config.errors import RequestError, refuse
from pagnn_bench.config.schema import Schema, check_values, number, whole
from pagnn_bench.data.graph import Graph, build_graph
from pagnn_bench.data.splits import choose_split

# Each round redraws duplicate pairs; a graph that needs more rounds is close to complete.
MAX_ROUNDS = 100
LARGEST = 10**8  # of nodes, words and tokens; more would not fit in any memory

SYNTHETIC: Schema = {
    "graph_seed": whole(0),
    "num_nodes": whole(4, LARGEST),  # two of each class
    "num_classes": whole(2),
    "num_features": whole(2, LARGEST),  # a topic for each class
    "avg_degree": number(0),
    "homophily": number(0, 1),
    "degree_spread": number(0),
    "words_per_node": number(1, LARGEST),
    "word_signal": number(0, 1),
}


def load_synthetic(config: Mapping[str, Any]) -> Graph:
    """Make the graph that the keys of ``conf/data/synthetic.yaml`` describe."""
    check_values("data.", config, SYNTHETIC)
    num_nodes, num_classes, num_words = (config[f"num_{what}"] for what in ("nodes", "classes", "features"))
    if num_nodes < 2 * num_classes:
        refuse("data.num_nodes", num_nodes, f"give at least two per class of data.num_classes={num_classes}")
    if num_words < num_classes:
        refuse("data.num_features", num_words, f"give at least as many as data.num_classes={num_classes}")
    rng = np.random.default_rng(config["graph_seed"])

    labels = rng.permutation(np.arange(num_nodes) % num_classes)
    edges = draw_edges(
        rng,
        labels,
        avg_degree=float(config["avg_degree"]),
        homophily=float(config["homophily"]),
        degree_spread=float(config["degree_spread"]),
    )
    features = draw_words(
        rng,
        labels,
        num_words,
        words_per_node=float(config["words_per_node"]),
        word_signal=float(config["word_signal"]),
    )
    return build_graph(config["name"], features, edges, labels, choose_split(config, labels, published={}))


def draw_edges(
    rng: np.random.Generator, labels: np.ndarray, *, avg_degree: float, homophily: float, degree_spread: float
) -> np.ndarray:
    """Exactly ``n * avg_degree / 2`` distinct edges, the share ``homophily`` of them inside a class.

    Args:
        rng: the source of randomness.
        labels: ``[n]``, every class present.
        avg_degree: mean number of neighbours.
        homophily: share of edges that join nodes of one class, in [0, 1].
        degree_spread: standard deviation of the logarithm of a node's weight; 0 gives all nodes the same.

    Returns:
        ``[2, E]`` int64, each undirected edge once.
    """
    num_nodes = len(labels)
    # Nodes are intervals on a line, class by class, each as long as its weight: a random point on the line draws a
    # node, a random point within a class's stretch draws one of its members.
    by_class = np.argsort(labels, kind="stable")
    ends = np.cumsum(rng.lognormal(sigma=degree_spread, size=num_nodes))
    last = np.cumsum(np.bincount(labels)) - 1
    stop = ends[last]
    start = np.concatenate([[0.0], stop[:-1]])
    total = ends[-1]

    def draw(count: int, same_class: bool) -> np.ndarray:
        """At most ``count`` edges as keys ``smaller * n + larger``."""
        source = by_class[np.searchsorted(ends[:-1], rng.random(count) * total)]
        low, high = start[labels[source]], stop[labels[source]]
        point = rng.random(count)
        if same_class:
            point = low + point * (high - low)
        else:
            point *= total - (high - low)
            point += np.where(point >= low, high - low, 0)
        target = by_class[np.searchsorted(ends[:-1], point)]
        # The second condition can only fail by rounding, at the border of a class.
        keep = (source != target) & ((labels[source] == labels[target]) == same_class)
        source, target = source[keep], target[keep]
        return np.minimum(source, target) * num_nodes + np.maximum(source, target)

    num_edges = round(num_nodes * avg_degree / 2)
    inside = round(num_edges * homophily)
    sizes = [int(size) for size in np.bincount(labels)]
    pairs = sum(size * (size - 1) // 2 for size in sizes)
    room = {True: pairs, False: num_nodes * (num_nodes - 1) // 2 - pairs}
    keys = []
    for wanted, same_class in ((inside, True), (num_edges - inside, False)):
        if wanted > room[same_class]:
            raise RequestError(f"data.avg_degree={avg_degree:g}: too many edges for {num_nodes} nodes.")
        found = np.empty(0, dtype=np.int64)
        for _ in range(MAX_ROUNDS):
            if len(found) == wanted:
                break
            found = np.union1d(found, draw(wanted - len(found), same_class))
        else:
            raise RequestError(f"data.avg_degree={avg_degree:g}: too many edges for {num_nodes} nodes.")
        keys.append(found)
    return np.stack(np.divmod(np.concatenate(keys), num_nodes))


def draw_words(
    rng: np.random.Generator, labels: np.ndarray, num_words: int, *, words_per_node: float, word_signal: float
) -> sparse.csr_array:
    """Binary bags of words, ``[n, num_words]``; word w belongs to the topic of class ``w mod num_classes``.

    Args:
        rng: the source of randomness.
        labels: ``[n]``.
        num_words: d, at least the number of classes.
        words_per_node: mean number of tokens (at least one per node); slightly fewer distinct words.
        word_signal: share of tokens from the topic of the node's class, in [0, 1].
    """
    num_classes = labels.max() + 1
    tokens = 1 + rng.poisson(words_per_node - 1, size=len(labels))
    node = np.repeat(np.arange(len(labels)), tokens)
    label = labels[node]
    topic_size = (num_words - 1 - label) // num_classes + 1
    topic_word = label + num_classes * np.floor(rng.random(len(node)) * topic_size).astype(np.int64)
    popularity = np.cumsum(1 / (10 + np.arange(num_words)))
    common_word = np.searchsorted(popularity[:-1], rng.random(len(node)) * popularity[-1])
    word = np.where(rng.random(len(node)) < word_signal, topic_word, common_word)
    features = sparse.coo_array((np.ones(len(node)), (node, word)), shape=(len(labels), num_words)).tocsr()
    features.data[:] = 1
    return features
