"""Kept arrays: found again, never believed when damaged, and a disk that refuses them costs only time."""

from __future__ import annotations

import logging
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from pagnn_bench.records.cache import cached_array

VALUES = np.linspace(0, 1, 50, dtype=np.float16)


def keep(folder, key="some-key", values=VALUES):
    return cached_array(folder, key, lambda: values)


def refuse():
    raise AssertionError("the array should have come from its file")


@pytest.mark.parametrize(
    "values",
    [VALUES, np.array([3.5, -1e30], dtype=np.float32), np.zeros(0, dtype=np.float16), np.ones((2, 3))],
    ids=["half", "single", "empty", "matrix"],
)
def test_the_second_time_the_array_comes_from_its_file(tmp_path, values):
    first = keep(tmp_path, values=values)
    second = cached_array(tmp_path, "some-key", refuse)
    assert (first.hit, second.hit) == (False, True)
    assert second.values.dtype == values.dtype
    np.testing.assert_array_equal(second.values, values)
    assert second.seconds == first.seconds  # what it took when it was made
    # And nothing half-written beside it.
    assert [path.name for path in tmp_path.iterdir()] == ["some-key.npz"]


def test_another_key_is_another_array(tmp_path):
    keep(tmp_path)
    other = keep(tmp_path, "other-key", VALUES + 1)
    assert not other.hit
    np.testing.assert_array_equal(cached_array(tmp_path, "some-key", refuse).values, VALUES)


def test_without_a_folder_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not keep(None).hit
    assert not keep(None).hit
    assert list(tmp_path.iterdir()) == []


def test_a_computation_that_fails_leaves_nothing(tmp_path):
    def fail():
        raise FloatingPointError("diverged")

    with pytest.raises(FloatingPointError):
        cached_array(tmp_path / "new", "some-key", fail)
    assert list((tmp_path / "new").iterdir()) == []
    assert not keep(tmp_path).hit


def learn_slowly(folder, key: str, relearn: bool) -> bool:
    """In a process of its own: whether the array was already there."""

    def compute():
        time.sleep(0.3)
        with open(folder / "computed", "a") as file:
            file.write("once ")
        return VALUES

    return cached_array(folder, key, compute, relearn).hit


@pytest.mark.parametrize("relearn", [False, True])
def test_processes_that_want_the_same_compute_it_once(tmp_path, relearn):
    if relearn:
        keep(tmp_path)
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(time.sleep, [0.2] * 3))  # all are there before it begins
        hits = list(pool.map(learn_slowly, [tmp_path] * 3, ["some-key"] * 3, [relearn] * 3))
    assert sorted(hits) == [False, True, True]
    assert (tmp_path / "computed").read_text() == "once "
    assert not (tmp_path / "some-key.lock").exists()


def test_the_lock_of_a_process_that_died_hinders_nobody(tmp_path):
    (tmp_path / "some-key.lock").touch()
    assert not keep(tmp_path).hit
    assert [path.name for path in tmp_path.iterdir()] == ["some-key.npz"]


def damaged_once(folder, content: bytes, caplog) -> None:
    """A file with this content is named and replaced by a good one."""
    path = folder / "some-key.npz"
    path.write_bytes(content)
    caplog.clear()
    found = keep(folder)
    assert not found.hit
    np.testing.assert_array_equal(found.values, VALUES)
    (warning,) = caplog.records
    assert warning.levelno == logging.WARNING
    assert str(path) in warning.getMessage()
    assert cached_array(folder, "some-key", refuse).hit


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_truncated_file_is_named_and_made_again(tmp_path, caplog, share):
    keep(tmp_path)
    content = (tmp_path / "some-key.npz").read_bytes()
    damaged_once(tmp_path, content[: int(share * len(content))], caplog)


@pytest.mark.parametrize("content", [b"not an archive", b"PK\x03\x04 but no more than that", b"\x93NUMPY"])
def test_a_file_of_another_kind_is_named_and_made_again(tmp_path, caplog, content):
    damaged_once(tmp_path, content, caplog)


def test_the_file_of_another_key_is_named_and_made_again(tmp_path, caplog):
    """A whole file under a wrong name: its content is good, but not the answer to this question."""
    keep(tmp_path, "other-key", VALUES + 1)
    damaged_once(tmp_path, (tmp_path / "other-key.npz").read_bytes(), caplog)


def test_an_archive_without_our_entries_is_named_and_made_again(tmp_path, caplog):
    np.savez(tmp_path / "foreign.npz", values=VALUES)
    damaged_once(tmp_path, (tmp_path / "foreign.npz").read_bytes(), caplog)


def test_no_flipped_byte_ever_gives_a_wrong_array(tmp_path):
    """A byte without meaning (a date, say) may go unnoticed; no other may, wherever it is."""
    keep(tmp_path)
    path = tmp_path / "some-key.npz"
    whole, made_again = path.read_bytes(), 0
    for position in range(len(whole)):
        flipped = bytearray(whole)
        flipped[position] ^= 0xFF
        path.write_bytes(flipped)
        found = keep(tmp_path)
        np.testing.assert_array_equal(found.values, VALUES)
        made_again += not found.hit
    assert made_again > len(whole) / 2


def test_a_folder_that_cannot_be_written_to_is_named_and_does_no_harm(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    found = keep(tmp_path / "file")
    np.testing.assert_array_equal(found.values, VALUES)
    (warning,) = caplog.records
    assert "some-key.npz could not be saved" in warning.getMessage()
