"""Learned imputations in general, with a learner that costs nothing: what is kept, found again and made again."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from pagnn_bench.config.identity import Cell
from pagnn_bench.engine.execute import Executor
from pagnn_bench.methods.base import Context
from pagnn_bench.methods.imputation import ImputationMethod, LearnedImputation, imputation_error
from pagnn_bench.missing import Observed, hide
from tests.conftest import random_graph, random_observed

CPU = torch.device("cpu")
COMMON: dict[str, Any] = {
    "hidden": 8,
    "dropout": 0.5,
    "input_dropout": "post",
    "bias": True,
    "per_seed": False,
}


class Dice(LearnedImputation):
    """Fills in random numbers; senseless values stand where entries are observed."""

    learned: ClassVar[list[int]] = []  # the seeds of all calls

    def __init__(self, strength: float = 1.0, **common: Any) -> None:
        super().__init__(**(COMMON | common))
        self.strength = strength

    def learn(self, graph, context):
        self.learned.append(context.seed)
        values = self.strength * np.random.default_rng(context.seed).random(graph.features.shape)
        return np.where(graph.observed.dense(), np.nan, values)


class OtherDice(Dice):
    """The same thing under another name."""


@pytest.fixture(autouse=True)
def _forget():
    Dice.learned.clear()


@pytest.fixture(params=["rows", "cells"])
def incomplete(request):
    graph = random_graph()
    return hide(graph, random_observed(graph, request.param, 0.4))


def context(cache=None, seed=5):
    return Context(seed, CPU, cache=cache)


def assert_same(first, second):
    for name in ("aggregated", "filled"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert (first.operator != second.operator).nnz == 0
    for one, other in zip(first.factors, second.factors):
        np.testing.assert_array_equal(*(m.toarray() if sp.issparse(m) else m for m in (one, other)))


def test_observed_entries_come_back_bit_for_bit(incomplete):
    filled = Dice().impute(incomplete, context())
    known = incomplete.observed.dense()
    np.testing.assert_array_equal(filled[known], incomplete.features.toarray()[known])
    expected = np.random.default_rng(5).random(known.shape)[~known]
    np.testing.assert_array_equal(filled[~known], expected.astype(np.float16).astype(np.float32))


def test_the_second_time_nothing_is_learned_and_the_signal_is_the_same(incomplete, tmp_path):
    without = Dice().signal(incomplete, context())
    first = Dice().signal(incomplete, context(tmp_path))
    assert len(Dice.learned) == 2
    second = Dice().signal(incomplete, context(tmp_path))
    assert len(Dice.learned) == 2
    assert_same(first, second)
    assert_same(first, without)
    assert first.facts["cached_seconds"] == 0
    assert (
        second.facts["cached_seconds"] == second.facts["impute_seconds"] == first.facts["impute_seconds"] > 0
    )


def test_relearning_ignores_a_cached_file_and_replaces_it(incomplete, tmp_path):
    Dice().signal(incomplete, context(tmp_path))
    (path,) = tmp_path.iterdir()
    path.write_bytes(b"what was kept")
    again = Dice().signal(incomplete, dataclasses.replace(context(tmp_path), relearn=True))
    assert len(Dice.learned) == 2
    assert again.facts["cached_seconds"] == 0
    Dice().signal(incomplete, context(tmp_path))
    assert len(Dice.learned) == 2


@pytest.mark.parametrize("damage", ["truncated", "flipped", "foreign"])
def test_a_damaged_file_gets_a_warning_and_is_learned_again(incomplete, tmp_path, caplog, damage):
    first = Dice().signal(incomplete, context(tmp_path))
    (path,) = tmp_path.iterdir()
    content = bytearray(path.read_bytes())
    if damage == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        content[len(content) // 3] ^= 0x10
        path.write_bytes(content)
    else:  # the file of another seed under this name
        Dice().signal(incomplete, context(tmp_path, seed=6))
        (other,) = set(tmp_path.iterdir()) - {path}
        path.write_bytes(other.read_bytes())
    before = len(Dice.learned)
    again = Dice().signal(incomplete, context(tmp_path))
    assert Dice.learned[before:] == [5]
    (warning,) = caplog.records
    assert str(path) in warning.getMessage()
    assert_same(first, again)
    Dice().signal(incomplete, context(tmp_path))
    assert len(Dice.learned) == before + 1


def test_the_key_names_everything_that_matters_and_nothing_else(incomplete, tmp_path):
    def files(method: LearnedImputation, graph=incomplete, seed=5) -> int:
        method.signal(graph, context(tmp_path, seed))
        return len(list(tmp_path.iterdir()))

    assert files(Dice()) == 1
    # What the GCN does with the filled features, and how often one learns, changes nothing that is learned.
    gcn = {"hidden": 99, "dropout": 0.1, "input_dropout": "none", "bias": False, "per_seed": True}
    for key, value in gcn.items():
        assert files(Dice(**{key: value})) == 1, key

    features = incomplete.features.copy()
    features.data[0] += 1
    moved = incomplete.features.copy()
    row = int(np.flatnonzero(np.diff(moved.indptr))[0])
    free = np.setdiff1d(np.arange(moved.shape[1]), moved.indices[moved.indptr[row] : moved.indptr[row + 1]])
    moved.indices[moved.indptr[row]] = free[0]
    edges = sp.lil_array(incomplete.adjacency)
    edges[0, -1] = edges[-1, 0] = 1
    mask = incomplete.observed
    rows = None if mask.rows is None else mask.rows.copy()
    cells = None if mask.cells is None else mask.cells.copy()
    (rows if rows is not None else cells).flat[0] ^= True
    wider = (mask.shape[0], mask.shape[1] + 1)  # one more column in which nothing is stored
    wide_cells = None if mask.cells is None else np.pad(mask.cells, ((0, 0), (0, 1)))
    wide = dataclasses.replace(
        incomplete,
        features=sp.csr_array(
            (incomplete.features.data, incomplete.features.indices, incomplete.features.indptr), wider
        ),
        observed=Observed(wider, mask.rows, wide_cells),
    )
    split = incomplete.split
    turned = dataclasses.replace(split, train=split.train[1:], val=np.append(split.val, split.train[:1]))
    changes = {
        "seed": (Dice(), incomplete, 6),
        "setting": (Dice(strength=0.5), incomplete, 5),
        "method": (OtherDice(), incomplete, 5),
        "value": (Dice(), dataclasses.replace(incomplete, features=features), 5),
        "column": (Dice(), dataclasses.replace(incomplete, features=moved), 5),
        "edge": (Dice(), dataclasses.replace(incomplete, adjacency=sp.csr_array(edges)), 5),
        "mask": (Dice(), dataclasses.replace(incomplete, observed=Observed(mask.shape, rows, cells)), 5),
        "width": (Dice(), wide, 5),
        # A model may look at what a method is given of labels and split.
        "labels": (Dice(), dataclasses.replace(incomplete, labels=incomplete.labels[::-1].copy()), 5),
        "split": (Dice(), dataclasses.replace(incomplete, split=turned), 5),
    }
    for number, (name, change) in enumerate(changes.items(), start=2):
        assert files(*change) == number, name


def cell(per_seed: bool) -> Cell:
    data = {"name": "synthetic", "source": "synthetic", "graph_seed": 0, "num_nodes": 60, "num_classes": 3}
    data |= {"num_features": 12, "avg_degree": 4, "homophily": 0.7, "degree_spread": 0.5, "words_per_node": 4}
    data |= {"word_signal": 0.5, "split": "random", "split_seed": 0, "train_per_class": 5, "num_val": 15}
    method = {"name": "dice", "_target_": f"{__name__}.Dice", **COMMON, "per_seed": per_seed}
    protocol = {"lr": 0.02, "weight_decay": 5e-3, "patience": 5, "max_epochs": 5, "stopping": "val_loss"}
    return Cell(
        method=method,
        data=data | {"num_test": None},
        missing={"name": "type1", "pattern": "rows", "exact": False},
        protocol={"name": "short", **protocol, "init_gain": 1.4, "feature_norm": "none"},
        rate=0.5,
    )


def test_one_model_per_mask_or_one_per_seed(tmp_path):
    once = Executor(CPU, cache=tmp_path / "once").run(cell(False), 0, [0, 1, 2])
    assert len(Dice.learned) == 1
    Executor(CPU, cache=tmp_path / "once").run(cell(False), 0, [3, 4])  # more seeds later: the file is there
    assert len(Dice.learned) == 1

    Dice.learned.clear()
    relearn = Executor(CPU, cache=tmp_path / "relearn").run(cell(True), 0, [0, 1, 2])
    assert len(set(Dice.learned)) == len(Dice.learned) == 3
    assert len(list((tmp_path / "relearn").iterdir())) == 3
    assert [record["seed"] for record in relearn.records] == [0, 1, 2]
    alone = Executor(CPU, cache=tmp_path / "relearn").run(cell(True), 0, [1])
    assert len(Dice.learned) == 3
    assert alone.records[0] == relearn.records[1]
    assert {"impute_rmse", "impute_bce", "impute_seconds"} <= set(once.facts)


@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_with_nothing_missing_nothing_is_learned(tmp_path, pattern):
    graph = random_graph()
    observed = random_observed(graph, pattern, 0.0)
    signal = Dice().signal(hide(graph, observed), context(tmp_path))
    assert Dice.learned == []
    assert list(tmp_path.iterdir()) == []
    assert (signal.filled != graph.features).nnz == 0
    assert signal.facts == {"impute_seconds": 0.0, "cached_seconds": 0.0}
    assert imputation_error(signal.filled, graph.features, observed) == {}


@pytest.mark.parametrize("strength", [np.nan, np.inf])
def test_a_diverged_model_is_an_error_and_is_not_kept(incomplete, tmp_path, strength):
    with pytest.raises(FloatingPointError, match="diverged"):
        Dice(strength).signal(incomplete, context(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_values_too_large_for_half_precision_are_kept_as_they_are(incomplete, tmp_path):
    hidden = ~incomplete.observed.dense()
    expected = 1e6 * np.random.default_rng(5).random(hidden.shape)[hidden]
    for _ in range(2):
        filled = Dice(1e6).impute(incomplete, context(tmp_path))
        np.testing.assert_allclose(filled[hidden], expected, rtol=1e-6)


def naive_error(filled, truth, known) -> tuple[float, float]:
    squared, entropy, count = 0.0, 0.0, 0
    for i in range(truth.shape[0]):
        for f in range(truth.shape[1]):
            if not known[i, f]:
                p, x = float(filled[i, f]), float(truth[i, f])
                squared, count = squared + (p - x) ** 2, count + 1
                p = min(max(p, 1e-6), 1 - 1e-6)
                entropy -= np.log(p) if x == 1 else np.log(1 - p)
    return np.sqrt(squared / count), entropy / count


@pytest.mark.parametrize("pattern", ["rows", "cells"])
@pytest.mark.parametrize("sparse", [False, True])
def test_imputation_error_equals_a_naive_loop(pattern, sparse):
    graph = random_graph()
    observed = random_observed(graph, pattern, 0.4)
    guess = np.random.default_rng(1).random(graph.features.shape).astype(np.float32)
    guess[guess < 0.3], guess[guess > 0.9] = 0, 1  # at worst infinitely surprised
    rmse, bce = naive_error(guess, graph.features.toarray(), observed.dense())
    filled = sp.csr_array(guess) if sparse else guess
    for rows in (7, 40, 2048):  # with and without a remainder
        error = imputation_error(filled, graph.features, observed, rows)
        assert error == pytest.approx({"impute_rmse": rmse, "impute_bce": bce}, rel=1e-9)


def test_imputation_error_of_real_values_has_no_entropy():
    graph = random_graph()
    truth = (graph.features * 0.5).tocsr()
    observed = random_observed(graph, "cells", 0.4)
    guess = np.zeros(truth.shape, dtype=np.float32)
    rmse, _ = naive_error(guess, truth.toarray(), observed.dense())
    assert imputation_error(guess, sp.csr_array(truth), observed) == pytest.approx({"impute_rmse": rmse})


class Constant(ImputationMethod):
    """Returns whatever it was made with."""

    def __init__(self, value: Any) -> None:
        super().__init__(**{key: value for key, value in COMMON.items() if key != "per_seed"})
        self.value = value

    def impute(self, graph, context):
        return self.value(graph)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (lambda graph: None, "numpy array, not NoneType"),
        (lambda graph: torch.zeros(3, 2), "numpy array, not Tensor"),
        (lambda graph: np.zeros((3, 2)), r"shape \(\d+, \d+\), not \(3, 2\)"),
        (lambda graph: sp.csr_array((3, 2)), r"shape \(\d+, \d+\), not \(3, 2\)"),
        (lambda graph: np.full(graph.features.shape, np.nan), "not finite"),
        (lambda graph: np.zeros(graph.features.shape), "changes observed entries"),
        (lambda graph: sp.csr_array(graph.features.shape), "changes observed entries"),
    ],
)
def test_what_a_method_fills_in_is_checked(incomplete, value, complaint):
    with pytest.raises((TypeError, ValueError), match=rf"Constant\.impute.*{complaint}"):
        Constant(value).signal(incomplete, context())
    for kept in (incomplete.features, incomplete.features.toarray()):
        Constant(lambda graph, kept=kept: kept).signal(incomplete, context())


def test_what_a_model_has_learned_is_checked(incomplete, monkeypatch):
    monkeypatch.setattr(Dice, "learn", lambda self, graph, context: torch.zeros(graph.features.shape))
    with pytest.raises(TypeError, match=r"Dice\.learn has to return a numpy array, not Tensor"):
        Dice().signal(incomplete, context())
