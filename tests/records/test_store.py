"""The store: nothing finished is ever lost, and every trial counts once."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pagnn_bench
from pagnn_bench.config.identity import Cell
from pagnn_bench.records.store import Store
from tests.records.common import CELL, CONFIG, OTHER, PROVENANCE, accuracies, failed, leftovers, ok, save

# -- What is saved is what is loaded -------------------------------------------------------------------------


def test_round_trip(store):
    path = save(store, ok(0, 0.1 + 0.2), failed(1), mask=3)
    trials = Store(store.cells_dir.parent).load(CELL)
    assert list(trials) == [(3, 0), (3, 1)]
    first, second = trials.values()
    assert (first.mask, first.seed, first.ok, first.record) == (3, 0, True, ok(0, 0.1 + 0.2))
    assert (second.ok, second.record) == (False, failed(1))
    assert first.batch is second.batch
    assert first.batch.path == path
    assert first.batch.facts == {"seconds": 1.5}
    assert first.batch.provenance == PROVENANCE
    assert path.parent == store.folder(CELL)
    assert path.name.startswith("mask3-seeds0..1-")
    assert not leftovers(store)


def test_an_empty_store_holds_nothing(store):
    assert store.load(CELL) == {}
    assert store.failures(CELL) == []
    assert list(store.cells()) == []
    assert store.missing(CELL, [0, 1], [0]) == {0: [0], 1: [0]}
    assert not store.cells_dir.exists()


def test_keys_and_tuples_that_json_changes_do_not_break_the_seal(store):
    store.save(CELL, 0, [ok(0)], {"degrees": {10: 1, 9: (2, 3)}}, PROVENANCE)
    assert store.load(CELL)[0, 0].batch.facts == {"degrees": {"10": 1, "9": [2, 3]}}
    assert not store.damaged


def test_cells_are_distinguished_and_described(store):
    save(store, ok(0))
    save(store, ok(0), ok(1), cell=OTHER)
    cells = list(store.cells())
    assert [cell.id for cell in cells] == sorted([CELL.id, OTHER.id])
    assert {cell.rate: len(store.load(cell)) for cell in cells} == {0.5: 1, 0.7: 2}
    assert cells[0].data == {"name": "tiny", "label": "Tiny"}, "the places of one machine are left out"
    assert cells[0].method == CONFIG["method"]


@pytest.mark.parametrize(
    "records",
    [
        [],
        [ok(0), ok(0)],
        [{"seed": 0}],
        [{"status": "ok", "test_acc": 0.5}],
        [{"seed": 0, "status": "done", "test_acc": 0.5}],
        [{"seed": 0, "status": "ok"}],
        [{"seed": 0, "status": "ok", "test_acc": "0.5"}],
        [ok(0, 1.01)],
        [ok(0, -0.01)],
        [ok(0, float("nan"))],
        [{**ok(0), "val_loss": float("nan")}],
        [{**ok(0), "curve": [float("inf")]}],
    ],
)
def test_what_must_not_be_stored_is_refused(store, records):
    with pytest.raises(ValueError, match=r"record|batch|test_acc|JSON compliant"):
        save(store, *records)
    assert store.load(CELL) == {}
    assert not leftovers(store)


# -- Resume --------------------------------------------------------------------------------------------------


def test_missing_names_exactly_what_is_left(store):
    save(store, *map(ok, range(4)), mask=0)
    save(store, ok(1), failed(2), mask=1)
    store.save_failure(CELL, 2, [0, 1], "boom", "Traceback", PROVENANCE)
    expected = {1: [0, 2, 3], 2: [0, 1, 2, 3]}
    assert store.missing(CELL, [0, 1, 2], range(4)) == expected
    assert store.missing(CELL, [0], range(6)) == {0: [4, 5]}
    assert store.missing(OTHER, [0], [0]) == {0: [0]}


def test_overlapping_batches_count_a_trial_once(store):
    save(store, ok(0), ok(1))
    save(store, ok(1), ok(2))
    assert list(store.load(CELL)) == [(0, 0), (0, 1), (0, 2)]


def test_the_same_batch_twice_is_one_file(store):
    assert save(store, ok(0), ok(1)) == save(store, ok(1), ok(0))
    assert save(store, ok(0), ok(1)) != save(store, ok(0), ok(1), mask=1)
    assert save(store, ok(0), ok(1)) != save(store, ok(0), ok(1), generation=1)


def test_a_diverged_repetition_of_a_batch_does_not_replace_it(store):
    save(store, ok(0, 0.9), ok(1, 0.8))
    save(store, ok(0, 0.9), failed(1))
    assert accuracies(store) == {(0, 0): 0.9, (0, 1): 0.8}


def test_a_failed_trial_that_succeeds_later_counts(store):
    save(store, ok(0), failed(1))
    save(store, ok(1, 0.7))
    assert accuracies(store) == {(0, 0): 0.5, (0, 1): 0.7}


# -- Generations ---------------------------------------------------------------------------------------------


def test_a_forced_rerun_wins_and_the_earlier_result_stays_on_disk(store):
    assert store.next_generation(CELL) == 0
    before = save(store, ok(0, 0.1), ok(1, 0.1))
    assert store.next_generation(CELL) == 1
    save(store, ok(0, 0.2), generation=1)
    assert accuracies(store) == {(0, 0): 0.2, (0, 1): 0.1}
    save(store, ok(0, 0.3), ok(1, 0.3), generation=0)  # a late worker of the first run
    assert accuracies(store) == {(0, 0): 0.2, (0, 1): 0.3}
    assert before.exists()
    assert store.next_generation(CELL) == 2


def test_a_forced_rerun_that_diverges_loses_nothing(store):
    save(store, ok(0, 0.1))
    save(store, failed(0), generation=1)
    assert accuracies(store) == {(0, 0): 0.1}
    assert store.missing(CELL, [0], [0]) == {}


BATCHES = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(0, 2),
        st.dictionaries(st.integers(0, 3), st.none() | st.sampled_from([0.0, 0.25, 1.0]), min_size=1),
    ),
    max_size=8,
)


@settings(max_examples=40, deadline=None)
@given(batches=BATCHES)
def test_every_trial_has_its_best_record(batches):
    """Success, then generation, then file name decide; of one name the last write stays."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        files = {}
        for mask, generation, outcomes in batches:
            records = [failed(s) if acc is None else ok(s, acc) for s, acc in outcomes.items()]
            path = save(store, *records, mask=mask, generation=generation)
            files[path.name] = (mask, generation, outcomes)
        expected = {}
        for name, (mask, generation, outcomes) in files.items():
            for seed, accuracy in outcomes.items():
                candidate = (accuracy is not None, generation, name, accuracy)
                expected[mask, seed] = max(expected.get((mask, seed), (False, -1)), candidate)
        found = {key: trial.record.get("test_acc") for key, trial in store.load(CELL).items()}
        assert found == {key: best[3] for key, best in expected.items()}
        done = {key for key, best in expected.items() if best[0]}
        left = {(m, s) for m, seeds in store.missing(CELL, [0, 1], range(4)).items() for s in seeds}
        assert left == {(m, s) for m in (0, 1) for s in range(4)} - done


# -- Failures ------------------------------------------------------------------------------------------------


def test_a_failure_is_listed_until_its_trials_are_done(store):
    path = store.save_failure(CELL, 0, [2, 0, 1], "ValueError: boom", "Traceback ...", PROVENANCE)
    (failure,) = store.failures(CELL)
    assert (failure.path, failure.mask, failure.seeds) == (path, 0, [0, 1, 2])
    assert (failure.error, failure.traceback) == ("ValueError: boom", "Traceback ...")
    assert failure.provenance == PROVENANCE

    save(store, ok(0), ok(1), ok(2), mask=1)
    save(store, ok(0), ok(1))
    assert [failure.seeds for failure in store.failures(CELL)] == [[2]]
    save(store, ok(2), ok(3))
    assert store.failures(CELL) == []
    assert not path.exists()


def test_a_failure_noted_after_another_worker_succeeded_is_none(store):
    save(store, ok(0))
    store.save_failure(CELL, 0, [0], "boom", "", PROVENANCE)
    assert store.failures(CELL) == []


def test_a_diverged_trial_takes_the_place_of_its_failure(store):
    path = store.save_failure(CELL, 0, [0], "boom", "", PROVENANCE)
    save(store, failed(0))
    assert not path.exists()
    assert store.missing(CELL, [0], [0]) == {0: [0]}


def test_a_batch_that_fails_again_is_one_note(store):
    store.save_failure(CELL, 0, [0, 1], "first", "", PROVENANCE)
    store.save_failure(CELL, 0, [1, 0], "second", "", PROVENANCE)
    assert [failure.error for failure in store.failures(CELL)] == ["second"]


# -- Size ----------------------------------------------------------------------------------------------------


def test_thousands_of_files_are_read_quickly(store, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    for rate in range(10):
        for mask in range(300):
            save(store, *map(ok, range(5)), mask=mask, cell=Cell(**{**CONFIG, "rate": rate / 10}))
    reader = Store(store.cells_dir.parent)
    began = time.perf_counter()
    trials = [len(reader.load(cell)) for cell in reader.cells()]
    seconds = time.perf_counter() - began
    assert trials == [1500] * 10
    assert seconds < 20, "half a second or so is usual"


def test_the_store_imports_nothing_heavy():
    code = (
        "import sys; import pagnn_bench.records.store\n"
        "assert not {'torch', 'numpy', 'pandas', 'hydra', 'omegaconf'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=Path(pagnn_bench.__file__).parent.parent, check=True)
