"""``protocol=extreme``: the largest component, a split with every mask, and trials that know of both."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import connected_components

from pagnn_bench.cli import main
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.sweep import compose_combinations
from pagnn_bench.config.variants import find_variants
from pagnn_bench.engine.execute import Executor, check_cell
from pagnn_bench.engine.prepare import graph_of, graph_on, hide_mask
from pagnn_bench.nn.propagate import partial_aggregate, symmetric_operator
from pagnn_bench.records.store import Store

CPU = torch.device("cpu")
SMALL = (
    "data=synthetic",
    "data.num_nodes=300",
    "data.num_val=50",
    "data.avg_degree=2",  # some nodes are outside the largest component
    "protocol=extreme",
    "protocol.split.development=120",
    "protocol.split.train_per_class=5",
    "protocol.max_epochs=5",
)


def cell_of(*words: str, base: tuple[str, ...] = SMALL) -> Cell:
    [config] = compose_combinations([*base, *words])
    cell = Cell.from_config(config)
    check_cell(cell)
    return cell


def test_the_graph_is_one_component():
    whole, part = graph_of(cell_of("protocol.component=all")), graph_of(cell_of())
    assert part.num_nodes < whole.num_nodes
    assert connected_components(part.adjacency)[0] == 1
    sizes = np.bincount(connected_components(whole.adjacency)[1])
    assert part.num_nodes == sizes.max()


def test_mask_and_split_vary_together_and_methods_share_them():
    first, second = (hide_mask(cell_of("missing=type1"), mask, CPU).graph for mask in (0, 1))
    assert first.split.sizes == second.split.sizes
    assert set(first.split.test) != set(second.split.test)
    assert (first.observed.rows != second.observed.rows).any()
    other = hide_mask(cell_of("missing=type1", "method=fp"), 1, CPU).graph
    np.testing.assert_array_equal(other.split.train, second.split.train)
    np.testing.assert_array_equal(other.observed.rows, second.observed.rows)
    # The split belongs to the mask's index, not to what is hidden.
    assert graph_on(cell_of("missing=type2", "rate=0.9"), 1).split.val.tolist() == second.split.val.tolist()


def test_a_trial_is_trained_on_them():
    outcome = Executor(CPU, 1).run(cell_of(), 0, (0, 1))
    assert outcome.facts["own_split"] is True
    tested = len(graph_on(cell_of(), 0).split.test)
    for record in outcome.records:
        hits = record["test_acc"] * tested
        assert hits == pytest.approx(round(hits), abs=0.01)


def test_pagnn_has_three_layers_and_the_mask_in_the_first_only():
    """logits = Â relu(Â relu(φ(X, M) W₁ + b₁) W₂ + b₂) W₃ + b₃."""
    masked = hide_mask(cell_of("method=pagnn_n", "missing=type1"), 0, CPU)
    network = masked.method.prepare(masked.for_method(), masked.context).network([0], 1.0)
    graph = masked.graph
    hidden = partial_aggregate(graph.adjacency, graph.features, graph.observed, "n").values
    plain = symmetric_operator(graph.adjacency)
    for layer in (1, 2, 3):
        weight, bias = (getattr(network, f"{name}{layer}")[0].detach().numpy() for name in ("weight", "bias"))
        hidden = (hidden if layer == 1 else plain @ np.maximum(hidden, 0)) @ weight + bias
    assert weight.shape == (64, graph.num_classes)
    logits = network("test", None)[0].detach().numpy()
    np.testing.assert_allclose(logits, hidden[graph.split.test], rtol=1e-4, atol=1e-5)


def test_cells_of_other_protocols_are_what_they_were():
    """The keys at the values that stand for what was done before are no part of a cell."""
    cell = cell_of(base=("data=cora",))
    written = {**cell.protocol, "component": "all", "split": None}
    assert Cell(cell.method, cell.data, cell.missing, written, cell.rate).hash == cell.hash
    assert cell_of(base=("data=cora", "+protocol.component=largest")).hash != cell.hash


def test_its_name_tells_no_settings():
    cells = [
        cell_of(f"method={method}", base=("protocol=extreme",))
        for method in ("pagnn_n", "fp", "fsdcap", "gcnmf")
    ]
    for settings in find_variants(cells).values():
        assert settings == {"method": "", "data": "", "missing": "", "protocol": ""}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["protocol.component=biggest"], "protocol.component=biggest: choose one of all, largest"),
        (["protocol.split.development=0"], "protocol.split="),
        (["protocol.split.development=9999"], "protocol.split.development=9999: give more than"),
    ],
)
def test_nonsense_is_refused_before_anything_is_trained(tmp_path, capsys, words, message):
    assert main(["run", *SMALL, *words, "masks=1", "seeds=1", f"results_dir={tmp_path / 'r'}"]) == 2
    assert message in capsys.readouterr().err
    assert not list(Store(tmp_path / "r").cells())
