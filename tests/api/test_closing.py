"""The closing lines of a run: failures of a cell, one line per reason."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from pagnn_bench.api.closing import failure_lines
from pagnn_bench.engine.plan import Request
from pagnn_bench.records.store import Store
from tests.records.common import CELL, PROVENANCE, failed, ok, save

REQUEST = Request(CELL, frozenset(product(range(4), range(3))))


def test_a_reason_is_shown_once_with_its_masks_and_trials(tmp_path: Path):
    store = Store(tmp_path)
    refused = "RequestError: method.module=mine.GNN: forward fails (ValueError: no idea)."
    first = store.save_failure(CELL, 0, [0, 1, 2], refused, "Traceback ...", PROVENANCE)
    store.save_failure(CELL, 1, [0, 1, 2], refused, "Traceback ...", PROVENANCE)
    other = store.save_failure(CELL, 2, [0, 1], "ValueError: boom", "Traceback ...", PROVENANCE)
    save(store, ok(0), failed(1), failed(2), mask=3)
    reason = failed(1)["reason"]
    assert failure_lines(REQUEST, store) == [
        "  failed: 2 masks, 6 trials: method.module=mine.GNN: forward fails (ValueError: no idea) "
        f"(first traceback in {first})",
        f"  failed: mask 2, 2 seeds: ValueError: boom (traceback in {other})",
        f"  failed: 2 trials: {reason}",
    ]
