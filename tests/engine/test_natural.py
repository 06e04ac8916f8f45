"""From a file with gaps to records: nothing leaks, splits vary with the mask, errors are where the truth is known."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.sweep import compose_combinations
from pagnn_bench.engine.execute import Executor, check_cell, check_graph
from pagnn_bench.engine.prepare import graph_of, graph_on, hide_mask, prepare

CPU = torch.device("cpu")
RNG = np.random.default_rng(0)
LABELS = np.arange(60) % 3
KNOWN = RNG.random((60, 6)) >= 0.4
VALUES = (100 * RNG.normal(size=(60, 6)) + 300 * (np.arange(6) % 3 == LABELS[:, None])).astype(np.float32)
ARRAYS = {"features": VALUES, "observed": KNOWN, "edges": RNG.integers(60, size=(2, 150)), "labels": LABELS}
SPLIT = {"train_idx": np.arange(9), "val_idx": np.arange(9, 20), "test_idx": np.arange(20, 60)}
QUICK = (
    "data=custom",
    "data.train_per_class=5",
    "data.num_val=15",
    "protocol=quick",
    "protocol.max_epochs=15",
)


def write(folder: Path, name: str = "mine.npz", **changed: np.ndarray) -> str:
    np.savez(folder / name, **(ARRAYS | changed))
    return f"data.path={folder / name}"


def cell_of(path: str, *words: str, method: str = "mf", missing: str = "natural") -> Cell:
    words = (*QUICK, path, f"method={method}", f"missing={missing}", *words)
    [config] = compose_combinations(list(words))
    return Cell.from_config(config)


def records(cell: Cell, mask: int = 0) -> list:
    check_graph(cell, [mask])
    return Executor(CPU, 1).run(cell, mask, (0, 1)).records


PLACES = [("natural", "rate=0"), ("natural", "rate=0.3"), ("type1", "rate=0.3"), ("type2", "rate=0.3")]


@pytest.mark.parametrize("standardise", ["true", "false"])
@pytest.mark.parametrize(("missing", "rate"), PLACES)
@pytest.mark.parametrize("method", ["mf", "pagnn_n", "fp"])
def test_what_stands_at_missing_entries_does_not_matter(tmp_path, method, missing, rate, standardise):
    """Neither where the mask of the file says that it is missing, nor where we hide it; and twice is the same."""
    words = (rate, f"data.standardise={standardise}")
    cell = cell_of(write(tmp_path), *words, method=method, missing=missing)
    expected = records(cell)
    observed = hide_mask(cell, 0, CPU).graph.observed.dense()
    assert not observed[~KNOWN].any()
    spoiled = np.where(KNOWN, VALUES, 1e9)
    again = cell_of(write(tmp_path, "natural.npz", features=spoiled), *words, method=method, missing=missing)
    assert records(again) == expected
    spoiled[~observed] = 1e9
    again = cell_of(write(tmp_path, "all.npz", features=spoiled), *words, method=method, missing=missing)
    assert records(again) == expected


def test_the_rate_is_0_unless_given(tmp_path):
    path = write(tmp_path)
    assert cell_of(path).rate == 0
    assert cell_of(path, "rate=0.2").rate == 0.2
    assert cell_of(path, missing="type1").rate == 0.5


def test_keys_that_are_not_used_leave_a_cell_what_it_was(tmp_path):
    path = write(tmp_path)
    cell = cell_of(path)
    earlier = {key: value for key, value in cell.data.items() if key not in ("standardise", "one_hot")}
    assert dataclasses.replace(cell, data=earlier).hash == cell.hash
    used = [cell_of(path, word).hash for word in ("data.standardise=true", "data.one_hot=[0]")]
    assert len({cell.hash, *used}) == 3


def test_every_mask_is_a_split_of_its_own_for_all_methods_and_rates(tmp_path):
    path = write(tmp_path)
    cell = cell_of(path)
    splits = [graph_on(cell, mask).split for mask in range(5)]
    assert len({tuple(split.train) for split in splits}) == 5
    assert {split.sizes for split in splits} == {(15, 15, 30)}
    for other in (cell_of(path, "rate=0.2", method="fp"), cell_of(path, "data.split=random")):
        np.testing.assert_array_equal(graph_on(other, 3).split.test, splits[3].test)
    assert tuple(graph_on(cell_of(path, "data.split_seed=1"), 0).split.train) != tuple(splits[0].train)
    assert hide_mask(cell, 2, CPU).graph.split.train.tolist() == splits[2].train.tolist()
    assert records(cell, 0) != records(cell, 1)


def test_a_split_is_redrawn_under_natural_only_and_never_one_of_the_file(tmp_path):
    drawn = cell_of(write(tmp_path), missing="type1")
    assert graph_on(drawn, 3) is graph_of(drawn)
    fixed = cell_of(write(tmp_path, "fixed.npz", **SPLIT))
    assert graph_on(fixed, 3) is graph_of(fixed)


def test_facts(tmp_path):
    path = write(tmp_path)
    facts = prepare(hide_mask(cell_of(path, method="zero"), 0, CPU)).facts
    share = 1 - KNOWN.mean()
    assert facts["missing_share"] == facts["natural_share"] == pytest.approx(share)
    assert facts["own_split"] is True
    assert "impute_rmse" not in facts  # nothing is hidden of which the truth is known
    masked = hide_mask(cell_of(path, "rate=0.3", method="zero"), 0, CPU)
    facts, hidden = prepare(masked).facts, KNOWN & ~masked.graph.observed.dense()
    assert facts["missing_share"] == pytest.approx(share + hidden.mean())
    assert facts["impute_rmse"] == pytest.approx(np.sqrt((VALUES[hidden].astype(float) ** 2).mean()))
    assert "own_split" not in prepare(hide_mask(cell_of(path, missing="type2"), 0, CPU)).facts


def test_the_checksum_of_the_data_is_that_of_the_graph_as_loaded(tmp_path):
    cell = cell_of(write(tmp_path), "data.standardise=true")
    for mask in (0, 1):
        assert Executor(CPU, 1).run(cell, mask, (0,)).provenance["data_checksum"] == graph_of(cell).checksum


def refused(cell: Cell, masks=(0, 1)) -> str:
    """The sentence with which a run of this cell is refused."""
    try:
        check_cell(cell)
        check_graph(cell, masks)
    except RequestError as error:
        return str(error)
    raise AssertionError("not refused")


def test_equal_masks_are_refused(tmp_path):
    fixed = write(tmp_path, **SPLIT)
    assert refused(cell_of(fixed)).startswith("masks=2: missing=natural with rate=0 draws nothing")
    check_graph(cell_of(fixed), [1000])  # where settings are searched
    check_graph(cell_of(fixed, "rate=0.1"), range(5))
    check_graph(cell_of(fixed, "data.split=random"), range(5))


def test_methods_that_are_not_defined_for_the_gaps(tmp_path):
    path, rows = write(tmp_path), write(tmp_path, "rows.npz", observed=np.repeat(KNOWN[:, :1], 6, axis=1))
    assert "not defined for missing=natural" in refused(cell_of(path, method="sat"))
    assert "not defined for missing=type1" in refused(cell_of(path, method="sat", missing="type1"))
    assert "not defined for missing=natural" in refused(cell_of(rows, "rate=0.1", method="sat"))
    for words in ((), ("rate=0.1", "missing.further=rows")):
        cell = cell_of(rows, *words, method="sat")
        check_cell(cell)
        check_graph(cell, [0])
    assert refused(cell_of(path, method="full")).startswith("method=full needs all attributes")


def test_natural_gaps_where_there_are_none(tmp_path):
    whole = write(tmp_path, observed=np.ones_like(KNOWN))
    assert "data=custom has no missing attributes" in refused(cell_of(whole))
    check_graph(cell_of(whole, "rate=0.1"), [0, 1])
