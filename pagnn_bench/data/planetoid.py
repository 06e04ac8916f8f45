"""``data=cora``, ``citeseer`` and ``pubmed``: Planetoid's files (Yang et al. 2016), or Cora in LINQS text form."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from pagnn_bench.data.fetch import obtain
from pagnn_bench.data.files import data_root, read_checked
from pagnn_bench.data.graph import Graph, Split, build_graph
from pagnn_bench.data.splits import choose_split

TRAIN_PER_CLASS = 20
NUM_VAL = 500

# LINQS's names of the classes, in Planetoid's order.
CORA_CLASSES = (
    b"Theory",
    b"Reinforcement_Learning",
    b"Genetic_Algorithms",
    b"Neural_Networks",
    b"Probabilistic_Methods",
    b"Case_Based",
    b"Rule_Learning",
)

# What the pickles (of Python 2 and an old scipy) import, and the module that has it today.
PICKLED = {
    ("numpy", "ndarray"): "numpy",
    ("numpy", "dtype"): "numpy",
    ("numpy.core.multiarray", "_reconstruct"): "numpy.core.multiarray",
    ("scipy.sparse.csr", "csr_matrix"): "scipy.sparse",
    ("collections", "defaultdict"): "collections",
    ("__builtin__", "list"): "builtins",
}


class RawGraph(NamedTuple):
    """The content of both forms: features ``[n, d]``, edges ``[2, E]``, labels ``[n]``, test nodes ``[1000]``."""

    features: sparse.csr_array
    edges: np.ndarray
    labels: np.ndarray
    test: np.ndarray


def load_planetoid(config: Mapping[str, Any]) -> Graph:
    """Read one of the three; the graph is the same, bit for bit, whichever form is in the folder."""
    name = config["name"]
    root = data_root(config["root"])
    files, _ = obtain(root, name, "graph")
    contents = read_checked(root, name, files)
    raw = read_linqs(contents) if "cora.content" in contents else read_pickles(contents, name)

    def public() -> Split:
        num_train = TRAIN_PER_CLASS * (raw.labels.max() + 1)
        return Split(np.arange(num_train), np.arange(num_train, num_train + NUM_VAL), raw.test)

    split = choose_split(config, raw.labels, {"public": public})
    return build_graph(name, raw.features, raw.edges, raw.labels, split)


def read_pickles(contents: Mapping[str, bytes], name: str) -> RawGraph:
    """Planetoid's own form: ``allx``, ``ally`` hold the first nodes, ``tx``, ``ty`` the shuffled test nodes.

    Fifteen of Citeseer's test nodes are not listed; they have neither words nor a label.
    """
    allx, tx, ally, ty, neighbours = (
        _PlanetoidUnpickler(io.BytesIO(contents[f"ind.{name}.{part}"]), encoding="latin1").load()
        for part in ("allx", "tx", "ally", "ty", "graph")
    )
    test = np.array(contents[f"ind.{name}.test.index"].split(), dtype=np.int64)
    # Stored rows move to the place of their node; places without a row stay empty.
    place = np.concatenate([np.arange(allx.shape[0]), test])
    stored = sparse.coo_array(sparse.vstack([allx, tx]))
    features = sparse.csr_array(
        (stored.data, (place[stored.coords[0]], stored.coords[1])), shape=(len(neighbours), allx.shape[1])
    )
    one_hot = np.concatenate([ally, ty])
    labels = np.full(len(neighbours), -1)
    labels[place] = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), -1)

    source = np.repeat(list(neighbours), [len(targets) for targets in neighbours.values()])
    target = np.concatenate([np.array(targets, dtype=np.int64) for targets in neighbours.values()])
    return RawGraph(features, np.stack([source, target]), labels, test)


class _PlanetoidUnpickler(pickle.Unpickler):
    """Loads arrays, sparse matrices and dictionaries of lists, and refuses to look up anything else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in PICKLED:
            raise pickle.UnpicklingError(f"a Planetoid file does not need {module}.{name}")
        return super().find_class(PICKLED[module, name], name)


def read_linqs(contents: Mapping[str, bytes]) -> RawGraph:
    """Cora as LINQS publishes it: ``cora.content`` (paper, 1433 bits, class) and ``cora.cites`` (two papers).

    ``cora_planetoid_order.txt`` lists the paper of every Planetoid node, so features, labels, edges and the public
    split equal those of Planetoid's files, where the test nodes are the last thousand.
    """
    order = resources.files("pagnn_bench.data").joinpath("cora_planetoid_order.txt").read_bytes().split()
    node = {paper: position for position, paper in enumerate(order)}
    rows: list[np.ndarray] = [np.empty(0)] * len(order)
    labels = np.empty(len(order), dtype=np.int64)
    for line in contents["cora.content"].splitlines():
        paper, _, rest = line.partition(b"\t")
        words, _, topic = rest.rpartition(b"\t")
        digits = np.frombuffer(words, dtype=np.uint8)[::2]  # every second byte is a tab
        rows[node[paper]] = digits == ord("1")
        labels[node[paper]] = CORA_CLASSES.index(topic)
    papers = contents["cora.cites"].split()
    edges = np.array([node[paper] for paper in papers]).reshape(-1, 2).T
    return RawGraph(sparse.csr_array(np.stack(rows)), edges, labels, np.arange(len(order) - 1000, len(order)))
