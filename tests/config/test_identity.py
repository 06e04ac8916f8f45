"""Identity: what changes it, what does not, and the seeds derived from it."""

from __future__ import annotations

import copy
import hashlib

import pytest

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import Cell, parse_indices, parse_rate, seed_for

CONFIG = {
    "method": {"name": "pagnn_n", "label": "PaGNN-N", "description": "text", "hidden": 16},
    "data": {"name": "cora", "root": "/somewhere", "split": "public", "recommended": {"hidden": 16}},
    "missing": {"name": "type1", "pattern": "rows"},
    "protocol": {"name": "paper", "lr": 0.005},
    "rate": 0.1,
}


def changed(path: str, value: object) -> Cell:
    config = copy.deepcopy(CONFIG)
    *groups, key = path.split(".")
    target = config
    for group in groups:
        target = target[group]
    target[key] = value
    return Cell.from_config(config)


BASE = Cell.from_config(CONFIG)


@pytest.mark.parametrize(
    "path",
    [
        "method.label",
        "method.description",
        "data.root",
        "data.recommended",
        "data.paper",
    ],
)
def test_what_changes_no_number_changes_no_identity(path):
    assert changed(path, "other").hash == BASE.hash


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("method.hidden", 32),
        ("method.name", "x"),
        ("data.split", "random"),
        ("protocol.lr", 0.01),
        ("rate", 0.3),
    ],
)
def test_what_may_change_a_number_changes_the_identity(path, value):
    assert changed(path, value).hash != BASE.hash


def test_the_identity_is_stable():
    """Records are found again by this; if it changes, every stored result is orphaned."""
    text = (
        b'{"data":{"name":"cora","split":"public"},"method":{"hidden":16,"name":"pagnn_n"},'
        b'"missing":{"name":"type1","pattern":"rows"},"protocol":{"lr":0.005,"name":"paper"},"rate":0.1}'
    )
    assert BASE.id == "cora-type1-0.1-pagnn_n-paper-" + hashlib.sha256(text).hexdigest()[:12]
    axes = b'{"data":"cora","mask":0,"purpose":"mask","rate":0.1}'
    seed = int.from_bytes(hashlib.sha256(axes).digest()[:8], "big") // 2
    assert seed_for("mask", data="cora", rate=0.1, mask=0) == seed


def test_masks_are_shared_by_methods_protocols_and_splits():
    for path, value in [
        ("method.name", "mf"),
        ("method.hidden", 64),
        ("protocol.lr", 1.0),
        ("data.split", "random"),
    ]:
        assert changed(path, value).mask_seed(3) == BASE.mask_seed(3)
    for path, value in [("data.name", "citeseer"), ("missing.name", "type2"), ("rate", 0.3)]:
        assert changed(path, value).mask_seed(3) != BASE.mask_seed(3)
    assert BASE.mask_seed(3) != BASE.mask_seed(4)


def test_every_trial_has_its_own_streams():
    seeds = {
        cell.trial_seed(purpose, mask, seed)
        for cell in (BASE, changed("method.name", "mf"))
        for purpose in ("weights", "dropout")
        for mask in range(5)
        for seed in range(20)
    }
    assert len(seeds) == 2 * 2 * 5 * 20
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_hyper_parameters_keep_the_random_numbers():
    """Two settings of one method are compared on the same initial weights and dropout."""
    assert changed("method.hidden", 64).trial_seed("weights", 0, 0) == BASE.trial_seed("weights", 0, 0)


def test_users_files_are_identified_by_their_content(tmp_path):
    config = copy.deepcopy(CONFIG)
    one, two = tmp_path / "one.npz", tmp_path / "two.npz"
    one.write_bytes(b"a")
    two.write_bytes(b"a")
    hashes = []
    for path in (one, two):
        config["data"]["path"] = str(path)
        hashes.append(Cell.from_config(config).hash)
    assert hashes[0] == hashes[1] != BASE.hash
    two.write_bytes(b"b")
    assert Cell.from_config(config).hash != hashes[0]
    config["data"]["path"] = str(tmp_path / "none.npz")
    with pytest.raises(RequestError, match=r"data\.path=.*none\.npz"):
        Cell.from_config(config)


def test_indices():
    assert parse_indices("seeds", 3) == [0, 1, 2]
    assert parse_indices("seeds", [4, 1]) == [1, 4]
    for wrong in (0, -1, 10**9, "abc", [], [1, 1], [-1], [1.5], True, None, 2.0):
        with pytest.raises(RequestError, match="seeds="):
            parse_indices("seeds", wrong)


def test_rates():
    assert parse_rate(0) == 0.0
    assert parse_rate(0.99) == 0.99
    assert parse_rate(0.1 + 0.2) == 0.3
    for wrong in (1.0, 1, -0.1, "abc", None, float("nan"), True, 1 - 1e-12):
        with pytest.raises(RequestError, match="rate="):
            parse_rate(wrong)


def test_a_name_may_be_a_number():
    number, text = changed("data.name", 2024), changed("data.name", "2024")
    assert number == text
    assert number.id.startswith("2024-")


@pytest.mark.parametrize("name", ["../elsewhere", "a/b", "", "a b"])
def test_a_name_must_be_fit_for_a_folder(name):
    with pytest.raises(RequestError, match=r"data\.name="):
        changed("data.name", name)


@pytest.mark.parametrize(
    ("key", "usual", "other"), [("precision", "float32", "bfloat16"), ("dropout_rng", "host", "device")]
)
def test_how_a_network_is_trained_counts_only_where_it_is_not_as_usual(key, usual, other):
    """As a key of its own it becomes one of the protocol."""
    assert changed(key, usual).hash == changed(f"protocol.{key}", usual).hash == BASE.hash
    assert changed(key, usual).description() == BASE.description()
    cell = changed(key, other)
    assert cell.protocol[key] == other
    assert cell.hash == changed(f"protocol.{key}", other).hash != BASE.hash
    assert Cell(**cell.description()).hash == cell.hash
    assert cell.trial_seed("weights", 0, 0) == BASE.trial_seed("weights", 0, 0)
