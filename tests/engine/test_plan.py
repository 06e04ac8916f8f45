"""What is left to do, in which order, and how long it will take."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from pagnn_bench.config.errors import RequestError
from pagnn_bench.engine.plan import Request, Settings, collect_requests, make_plan
from pagnn_bench.records.store import Store
from tests.records.common import CELL, OTHER, ok

SETTINGS = Settings(
    results_dir="results",
    device="cpu",
    threads=None,
    stack=20,
    force=False,
    train_curve=False,
    cache=True,
    dry_run=False,
    n_jobs=1,
    backend={"name": "local"},
    tensorboard=None,
)


def request(cell=CELL, masks=2, seeds=3) -> Request:
    return Request(cell, frozenset((m, s) for m in range(masks) for s in range(seeds)))


def order(plan) -> list[tuple[float, int, list[int]]]:
    return [(batch.cell.rate, batch.mask, batch.seeds) for batch in plan]


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "results")


def test_breadth_first(store):
    plan = make_plan([request(CELL), request(OTHER)], store, SETTINGS)
    assert order(plan) == [(r, m, [0, 1, 2]) for m in (0, 1) for r in (0.5, 0.7)]


def test_only_what_is_missing(store):
    store.save(CELL, 0, [ok(0), ok(2)], {}, {})
    store.save(CELL, 1, [ok(0), ok(1), ok(2)], {}, {})
    assert order(make_plan([request()], store, SETTINGS)) == [(0.5, 0, [1])]


def test_force_wants_everything_in_a_new_generation(store):
    store.save(CELL, 0, [ok(0)], {}, {})
    plan = make_plan([request(masks=1)], store, dataclasses.replace(SETTINGS, force=True))
    assert order(plan) == [(0.5, 0, [0, 1, 2])]
    assert plan[0].generation == 1


def test_stacks_are_cut(store):
    plan = make_plan([request(masks=1, seeds=5)], store, dataclasses.replace(SETTINGS, stack=2))
    assert [batch.seeds for batch in plan] == [[0, 1], [2, 3], [4]]


def test_a_cell_asked_for_twice_is_one_request():
    config: dict[str, Any] = {**dataclasses.asdict(CELL), "masks": 1, "seeds": [0, 1]}
    merged = collect_requests([config, {**config, "seeds": [1, 5]}, {**config, "rate": 0.7}])
    assert [sorted(item.trials) for item in merged] == [[(0, 0), (0, 1), (0, 5)], [(0, 0), (0, 1)]]


@pytest.mark.parametrize(
    ("key", "value"),
    [("stack", 0), ("n_jobs", 0), ("n_jobs", "many"), ("threads", -1), ("dry_run", "perhaps")],
)
def test_wrong_settings(key, value):
    with pytest.raises(RequestError, match=f"{key}={value}"):
        Settings.from_config({**dataclasses.asdict(SETTINGS), key: value})
