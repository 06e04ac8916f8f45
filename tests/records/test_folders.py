"""Folders that cannot be written to, and disks that fill up."""

from __future__ import annotations

import errno
import multiprocessing
import os
import stat
import tempfile
import time
from pathlib import Path

import pytest

from pagnn_bench.config.errors import RequestError
from pagnn_bench.records.sealed import StoreError
from pagnn_bench.records.store import STALE_SECONDS, Store
from tests.records.common import CELL, OTHER, accuracies, leftovers, ok, save


def test_prepare_creates_the_folder_and_leaves_no_trace(store):
    store.prepare()
    assert list(store.cells_dir.iterdir()) == []
    store.prepare()


def test_prepare_sweeps_only_what_is_stale(store):
    path = save(store, ok(0))
    stale, fresh = path.with_name(".a.json.1.tmp"), path.with_name(".b.json.2.tmp")
    for temporary in (stale, fresh):
        temporary.write_text("{")
    long_ago = time.time() - 2 * STALE_SECONDS
    os.utime(stale, (long_ago, long_ago))
    os.utime(path, (long_ago, long_ago))
    assert list(store.load(CELL)) == [(0, 0)]
    store.prepare()
    assert not stale.exists()
    assert fresh.exists()
    assert path.exists()
    assert not store.damaged


@pytest.mark.parametrize("results", ["file", "file/below", "file/further/below"])
def test_a_file_in_the_way_is_a_wrong_request(tmp_path, results):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RequestError, match=r"results_dir=.*file.*cannot be written to"):
        Store(tmp_path / results).prepare()
    assert (tmp_path / "file").read_text() == "mine"
    with pytest.raises((RequestError, StoreError), match="file"):
        save(Store(tmp_path / results), ok(0))


def test_reading_a_file_instead_of_a_folder_is_a_wrong_request(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RequestError, match="cannot be read"):
        list(Store(tmp_path / "file").cells())


def test_a_read_only_file_system_is_a_wrong_request(store, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "write_text", refuse)
    with pytest.raises(RequestError, match=r"results_dir=.*Read-only file system"):
        store.prepare()


def in_unprivileged_process(function, *arguments):
    """The result of ``function`` in a forked process that permission bits apply to, also when we are root."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work():
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        sender.send(function(*arguments))

    process = context.Process(target=work)
    process.start()
    sender.close()
    try:
        return receiver.recv()
    finally:
        process.join()


@pytest.fixture
def open_folder():
    """A folder that other users can reach; pytest's own are private."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)
        for path in Path(folder).rglob("*"):
            if path.is_dir():
                path.chmod(0o755)


def test_an_unwritable_folder_is_a_wrong_request(open_folder):
    results = open_folder / "results"
    results.mkdir(mode=0o555)

    def sentence():
        try:
            Store(results).prepare()
        except RequestError as error:
            return str(error)

    assert in_unprivileged_process(sentence) == (
        f"results_dir={results}: cannot be written to (Permission denied); choose a folder that can."
    )
    assert list(results.iterdir()) == []


def test_damage_in_a_read_only_folder_is_named(open_folder):
    store = Store(open_folder)
    good, bad = save(store, ok(0)), save(store, ok(1))
    bad.write_text("{")
    bad.parent.chmod(0o555)

    def read():
        return list(store.load(CELL)), store.damaged

    keys, damaged = in_unprivileged_process(read)
    assert keys == [(0, 0)]
    assert list(damaged) == [bad]
    assert "Permission denied" in damaged[bad]
    assert bad.read_text() == "{"
    assert good.exists()


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_loses_nothing(store, monkeypatch, call):
    save(store, ok(0, 0.1))
    with monkeypatch.context() as patch:

        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        patch.setattr(os, call, full)
        with pytest.raises(StoreError, match="No space left on device"):
            save(store, ok(0, 0.2), ok(1, 0.2))
        with pytest.raises(StoreError, match="No space left on device"):
            save(store, ok(0, 0.3), cell=OTHER)
    assert not leftovers(store)
    assert accuracies(store) == {(0, 0): 0.1}
    assert store.load(OTHER) == {}
    save(store, ok(0, 0.2), ok(1, 0.2))
    assert len(store.load(CELL)) == 2
    assert not store.damaged


def test_a_file_system_that_does_not_sync_folders_will_do(store, monkeypatch):
    fsync = os.fsync

    def files_only(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", files_only)
    save(store, ok(0))
    assert len(store.load(CELL)) == 1


def test_an_interrupted_write_leaves_nothing(store, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            save(store, ok(0))
    assert store.load(CELL) == {}
    assert not leftovers(store)
