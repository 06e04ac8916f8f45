"""What every method must do, tested on every file of conf/method: a new method is in these tests from its first day."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from pagnn_bench.config.catalogue import choices
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import Cell
from pagnn_bench.data.graph import Graph
from pagnn_bench.engine import execute, prepare
from pagnn_bench.engine.execute import Executor
from pagnn_bench.engine.prepare import graph_of
from pagnn_bench.methods import Method, build_method
from pagnn_bench.methods.base import Context, TwoLayerMethod
from pagnn_bench.methods.imputation import ImputationMethod, LearnedImputation
from pagnn_bench.missing import Observed, draw_observed, hide
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.network import PARTS
from tests.conftest import random_graph, random_observed, renamed
from tests.elsewhere import ELSEWHERE, elsewhere

CPU = torch.device("cpu")
CONTEXT = Context(seed=7, device=CPU)
METHODS = sorted(choices("method"))
ORACLES = ["full"]

# Settings that make learned methods fast enough to be tested here, and keep D2PT from spreading words over all of so
# small a graph; the keys must exist in their files.
FAST: dict[str, dict[str, Any]] = {
    "vae": {"width": 16, "latent": 4, "epochs": 20},
    "gain": {"width": 16, "iterations": 20},
    "sat": {"width": 16, "latent": 4, "epochs": 5},
    "gcnmf": {"components": 2},
    "fsdcap": {"num_iterations": 10, "classifier_epochs": 10},
    "d2pt": {"alpha": 0.3},
}

# A small graph on which words and neighbours both tell the class, and a short training.
SETTING = [
    "data=synthetic",
    "data.num_nodes=180",
    "data.num_classes=3",
    "data.num_features=40",
    "data.word_signal=0.5",
    "data.train_per_class=10",
    "data.num_val=50",
    "protocol=quick",
    "protocol.lr=0.05",
    "protocol.patience=5",
    "protocol.max_epochs=30",
]


@cache
def config(name: str, missing: str = "type1") -> dict[str, Any]:
    """The whole configuration with this method, resolved as the command line does; all methods take type 1."""
    fast = (f"method.{key}={value}" for key, value in FAST.get(name, {}).items())
    overrides = [f"method={name}", f"missing={missing}", *fast]
    with initialize_config_module("pagnn_bench.conf", version_base="1.3"):
        resolved = OmegaConf.to_container(compose("config", overrides + SETTING), resolve=True)
    assert isinstance(resolved, dict)
    return resolved


def cell_of(name: str, missing: str = "type1") -> Cell:
    return dataclasses.replace(Cell.from_config(config(name, missing)), rate=0.3)


def method_of(name: str) -> Method:
    return build_method(config(name)["method"])


def run(name: str, seeds: tuple[int, ...], missing: str = "type1") -> list[dict[str, Any]]:
    return Executor(CPU).run(cell_of(name, missing), mask=0, seeds=seeds).records


@cache
def trials(name: str, seeds: tuple[int, ...], missing: str = "type1") -> list[dict[str, Any]]:
    """As :func:`run`, once for all tests."""
    return run(name, seeds, missing)


def named(kind: type[Method]) -> list[str]:
    """The methods of this kind; one that cannot even be made is in, so that it fails alone."""

    def belongs(name: str) -> bool:
        try:
            return isinstance(method_of(name), kind)
        except RequestError:
            return True

    return [name for name in METHODS if belongs(name)]


def takes(name: str, pattern: str) -> bool:
    """Whether the method is defined for the pattern; one that cannot be made is in, as above."""
    try:
        return pattern in method_of(name).patterns
    except RequestError:
        return True


def matrix(values: sp.csr_array | np.ndarray) -> np.ndarray:
    return values if isinstance(values, np.ndarray) else values.toarray()


def places(names: Sequence[str]) -> list[tuple[str, str]]:
    """(method, missing type) of all that can be trained."""
    return [(name, "type1") for name in names] + [(name, "type2") for name in names if takes(name, "cells")]


@pytest.mark.parametrize("name", METHODS)
def test_learns_more_than_chance(name):
    records = trials(name, (0, 1, 2))
    assert [record["status"] for record in records] == ["ok"] * 3
    assert np.mean([record["test_acc"] for record in records]) > 0.5  # chance is a third


@pytest.mark.parametrize("name", METHODS)
def test_a_seed_alone_is_the_seed_among_three(name):
    (alone,), together = trials(name, (1,)), trials(name, (0, 1, 2))[1]
    for key in ("status", "epochs", "best_epoch", "test_acc", "val_acc"):
        assert alone[key] == together[key]
    assert alone["val_loss"] == pytest.approx(together["val_loss"], rel=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_the_same_trial_twice_gives_the_same_record(name):
    assert run(name, (1,)) == trials(name, (1,))


# Forms that the defaults do not reach.
FORMS = [
    {},
    {"input_dropout": "pre"},
    {"reference_quirks": True},
    {"mask_update": True},
    {"dropout": 0.3},
    {"link": True, "random_columns": 0.5},
    {"scaled": True, "leave_one_out": True},
]


@pytest.mark.parametrize(("name", "missing"), places(METHODS))
def test_every_tensor_is_on_the_device_of_the_training(name, missing, monkeypatch):
    """And trains there as on the CPU, on the same dropout masks; see :mod:`tests.elsewhere`."""
    cell = cell_of(name, missing)
    # Past the first look at the scores (training.window.LOOK_EVERY) and into the next window.
    cell = dataclasses.replace(cell, protocol={**cell.protocol, "max_epochs": 12})
    monkeypatch.setattr(execute, "device_facts", lambda device: {"device": str(device)})
    for form in FORMS:
        if form.keys() <= cell.method.keys():
            changed = dataclasses.replace(cell, method={**cell.method, **form})
            with elsewhere(monkeypatch):
                there = Executor(ELSEWHERE).run(changed, mask=0, seeds=(0, 1)).records
            here = Executor(CPU).run(changed, mask=0, seeds=(0, 1)).records
            for one, other in zip(there, here, strict=True):
                assert one == {**other, "val_loss": pytest.approx(other["val_loss"], rel=1e-4)}


def spoiled(cell: Cell) -> Graph:
    """The cell's graph with a senseless value in every hidden entry of mask 0."""
    graph = graph_of(cell)
    observed = draw_observed(cell.missing, cell.rate, graph.features.shape, cell.mask_seed(0))
    # NaN shows in every sum that it enters, even times 0; a large number where NaN is taken to mean "missing".
    senseless = np.where(np.arange(graph.num_features) % 2, np.float32(np.nan), np.float32(1e9))
    entries = np.where(observed.dense(), graph.features.toarray(), senseless)
    assert (entries != graph.features.toarray()).mean() > 0.2
    return dataclasses.replace(graph, features=sp.csr_array(entries))


WITHOUT_ORACLES = [name for name in METHODS if name not in ORACLES]


@pytest.mark.parametrize(("name", "missing"), places(WITHOUT_ORACLES))
def test_hidden_values_do_not_matter(name, missing, monkeypatch):
    expected, other = trials(name, (1,), missing), spoiled(cell_of(name, missing))
    monkeypatch.setattr(prepare, "graph_of", lambda cell: other)
    assert run(name, (1,), missing) == expected


def test_only_the_ceiling_looks_at_hidden_values(monkeypatch):
    assert [name for name in METHODS if method_of(name).oracle] == ORACLES
    for name in ORACLES:
        expected, other = trials(name, (1,)), spoiled(cell_of(name))
        monkeypatch.setattr(prepare, "graph_of", lambda cell, other=other: other)
        assert run(name, (1,)) != expected


def edge_cases(patterns: tuple[str, ...]) -> dict[str, Observed]:
    """Masks for :func:`random_graph`, which has an isolated node (the last) and an empty column (the last)."""
    graph = random_graph()
    n, d = graph.features.shape
    masks = {}
    for pattern in {"rows", "cells"} & set(patterns):
        for rate in (0.0, 0.5):
            masks[f"{pattern} at {rate}"] = random_observed(graph, pattern, rate)
        missing = {"pattern": pattern, "exact": False}
        masks[f"{pattern} at 0.99"] = draw_observed(missing, 0.99, (n, d), seed=3)
    if "rows" in patterns:
        masks["isolated node hidden"] = Observed((n, d), rows=np.arange(n) < n - 1)
    if "cells" in patterns:
        cells = random_observed(graph, "cells", 0.3).dense().copy()
        cells[[0, 20, n - 1]] = False  # a training node, a validation node and the isolated node
        cells[:, :2] = False
        masks["empty rows and columns"] = Observed((n, d), cells=cells)
    return masks


def entropies(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross entropy of every member of a stack, [S]."""
    return torch.stack([F.cross_entropy(each, target) for each in logits])


@pytest.mark.parametrize("name", METHODS)
def test_finite_in_all_edge_cases(name):
    """Logits, loss, gradients and facts are numbers, whatever is missing; for one seed and for three."""
    method, complete = method_of(name), random_graph()
    for case, observed in edge_cases(method.patterns).items():
        graph = hide(complete, observed, oracle=method.oracle)
        prepared = method.prepare(graph, CONTEXT)
        facts = [value for value in prepared.facts.values() if isinstance(value, float)]
        assert np.isfinite(facts).all(), case
        for seeds in ([1], [1, 2, 3]):
            network = prepared.network(seeds, 1.414)
            for part in PARTS:
                logits = network(part, None)
                assert logits.shape == (len(seeds), len(getattr(graph.split, part)), graph.num_classes)
                assert torch.isfinite(logits).all(), case
            target = torch.from_numpy(graph.labels[graph.split.train])
            losses = network.backward(DropoutStreams(seeds, CPU), partial(entropies, target=target))
            assert torch.isfinite(losses).all(), case
            for key, parameter in network.named_parameters():
                assert parameter.shape[0] == len(seeds), key
                assert parameter.grad is not None, key
                assert torch.isfinite(parameter.grad).all(), (case, key)


@pytest.mark.parametrize("name", named(ImputationMethod))
def test_with_nothing_missing_filling_changes_nothing(name):
    method, complete = method_of(name), random_graph()
    ceiling = method_of("full")
    for pattern in {"rows", "cells"} & set(method.patterns):
        observed = random_observed(complete, pattern, 0.0)
        graph = hide(complete, observed, oracle=True)
        found, expected = method.signal(graph, CONTEXT), ceiling.signal(graph, CONTEXT)
        values = matrix(found.aggregated)
        np.testing.assert_array_equal(values[:, : complete.num_features], matrix(expected.aggregated))
        # Further columns of a method, such as the mask, are all the same where nothing is missing.
        further = values[:, complete.num_features :]
        assert (further == further[:, :1]).all()
        np.testing.assert_array_equal(matrix(found.operator), matrix(expected.operator))


@pytest.mark.parametrize("name", named(ImputationMethod))
def test_observed_entries_are_kept_and_the_graph_is_not_written_to(name):
    method, complete = method_of(name), random_graph()
    for pattern in {"rows", "cells"} & set(method.patterns):
        observed = random_observed(complete, pattern, 0.5)
        graph = hide(complete, observed, oracle=method.oracle)
        before = copy.deepcopy(graph)
        filled = method.signal(graph, CONTEXT).filled
        np.testing.assert_array_equal(graph.features.toarray(), before.features.toarray())
        np.testing.assert_array_equal(graph.observed.dense(), before.observed.dense())
        if filled is not None:
            assert filled.shape == complete.features.shape
            known = observed.dense()
            np.testing.assert_array_equal(matrix(filled)[known], complete.features.toarray()[known])


DRAWING = [*named(LearnedImputation), "fisf", "arb"]  # their preparation draws nodes or weights of its own


@pytest.mark.parametrize("name", [name for name in named(TwoLayerMethod) if name not in DRAWING])
@pytest.mark.parametrize("pattern", ["rows", "cells"])
def test_names_of_nodes_do_not_matter(name, pattern):
    """For methods whose preparation has no randomness of its own."""
    method, complete = method_of(name), random_graph()
    graph = hide(complete, random_observed(complete, pattern, 0.6), oracle=method.oracle)
    order = np.random.default_rng(2).permutation(complete.num_nodes)
    plain, moved = method.signal(graph, CONTEXT), method.signal(renamed(graph, order), CONTEXT)
    np.testing.assert_allclose(matrix(moved.aggregated), matrix(plain.aggregated)[order], atol=1e-5)
    np.testing.assert_allclose(matrix(moved.operator), matrix(plain.operator)[order][:, order], atol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_an_unknown_key_is_refused(name):
    with pytest.raises(RequestError, match=f"method={name}: .*no_such_key"):
        build_method({**config(name)["method"], "no_such_key": 1})


def test_a_key_that_would_be_no_part_of_the_identity_is_refused():
    with pytest.raises(RequestError, match=r"method\.path: .*identity"):
        build_method({**config("zero")["method"], "path": "embeddings.npy"})


class Careless(ImputationMethod):
    """Changes in place what it is given, and takes down the labels that it sees."""

    seen: ClassVar[list[np.ndarray]] = []

    def impute(self, graph, context):
        self.seen.append(graph.labels.copy())
        graph.adjacency.data[:] = 0
        graph.labels[:] = 0
        return graph.features


def test_a_method_that_changes_what_it_is_given_harms_nobody_and_sees_training_labels_only():
    """One executor trains it between two others, as a sweep does."""
    cell = cell_of("zero")
    target = {"_target_": f"{__name__}.Careless", "name": "careless"}
    careless = dataclasses.replace(cell, method={**cell.method, **target})
    executor, graph = Executor(CPU, 1), graph_of(cell)
    first, _, again = (
        executor.run(each, mask, [0]).records for each, mask in ((cell, 0), (careless, 0), (cell, 0))
    )
    assert first == again
    [labels] = Careless.seen
    others = np.setdiff1d(np.arange(graph.num_nodes), graph.split.train)
    assert (labels[graph.split.train] == graph.labels[graph.split.train]).all()
    assert set(labels[others]) == {-1}
