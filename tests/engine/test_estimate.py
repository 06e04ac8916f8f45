"""Estimates of a plan, from batches whose times are made up."""

from __future__ import annotations

import dataclasses

import pytest

from pagnn_bench.config.identity import Cell
from pagnn_bench.engine.estimate import estimate_seconds
from pagnn_bench.engine.plan import Batch
from pagnn_bench.records.store import Store
from tests.records.common import CELL, CONFIG, OTHER, ok

RIVAL = Cell(**{**CONFIG, "method": {"name": "mf"}})
CELLS_MISSING = Cell(**{**CONFIG, "missing": {"name": "type2"}})


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path)


def batch(mask: int = 0, seeds: int = 2, cell: Cell = CELL) -> Batch:
    return Batch(cell, mask, list(range(seeds)), 0)


def finish(
    store: Store,
    cell: Cell,
    trial: float,
    seeds: int = 2,
    mask: int = 0,
    prepare: float = 0.0,
    device: str = "cpu",
    **facts,
):
    """Save a batch that took so many seconds for every trial."""
    times = {
        "prepare_seconds": prepare,
        "train_seconds": 0.75 * trial * seeds,
        "eval_seconds": 0.25 * trial * seeds,
    }
    store.save(
        cell,
        mask,
        [ok(seed) for seed in range(seeds)],
        {**times, "stack": seeds, **facts},
        {"device": device},
    )


def test_a_mask_is_prepared_once(store):
    plan = [batch(mask, seeds) for mask in (0, 1) for seeds in (3, 2)]
    assert estimate_seconds(plan, store) == (0, 10)  # nothing is known
    finish(store, OTHER, trial=4.0, prepare=100.0)
    assert estimate_seconds(plan, store) == (pytest.approx(10 * 4 + 2 * 100), 0)


def test_nothing_is_known_of_other_data(store):
    finish(store, OTHER, trial=4.0)
    elsewhere = dataclasses.replace(CELL, data={**CELL.data, "name": "huge"})
    assert estimate_seconds([batch(cell=elsewhere, seeds=6)], store) == (0, 6)


def test_the_nearest_stack_counts(store):
    finish(store, OTHER, trial=9.0, seeds=1, mask=0)
    finish(store, OTHER, trial=3.0, seeds=4, mask=1)
    finish(store, OTHER, trial=5.0, seeds=4, mask=2)
    finish(store, OTHER, trial=1.0, seeds=20, mask=3)
    for seeds, each in {1: 9.0, 3: 4.0, 8: 4.0, 10: 1.0, 40: 1.0}.items():
        assert estimate_seconds([batch(seeds=seeds)], store) == (pytest.approx(seeds * each), 0), seeds


def test_the_most_similar_cell_counts(store):
    finish(store, RIVAL, trial=7.0)
    assert estimate_seconds([batch()], store) == (pytest.approx(2 * 7), 0)  # another method on the same data
    finish(store, CELLS_MISSING, trial=5.0)
    assert estimate_seconds([batch()], store) == (pytest.approx(2 * 5), 0)  # the method, another missing type
    finish(store, OTHER, trial=3.0)
    assert estimate_seconds([batch()], store) == (pytest.approx(2 * 3), 0)  # another rate


def test_a_model_of_its_own_for_every_seed(store):
    """The executor trains such seeds one by one and notes a stack of 1, with the seconds of all."""
    finish(store, OTHER, trial=3.0, seeds=4, stack=1)
    assert estimate_seconds([batch(seeds=4)], store) == (pytest.approx(4 * 3), 0)


def test_a_gpu_says_nothing_about_a_cpu(store):
    finish(store, OTHER, trial=0.5, device="cuda:1")
    assert estimate_seconds([batch()], store, "cpu") == (0, 2)
    assert estimate_seconds([batch()], store, "cuda") == (pytest.approx(2 * 0.5), 0)
    finish(store, OTHER, trial=8.0, mask=1)
    assert estimate_seconds([batch()], store, "cpu") == (pytest.approx(2 * 8), 0)
    assert estimate_seconds([batch()], store, "cuda") == (pytest.approx(2 * 0.5), 0)
    assert estimate_seconds([batch()], store) == (pytest.approx(8.5), 0), "workers elsewhere: who knows"
