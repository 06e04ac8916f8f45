"""Identity: what a cell and a trial are, and every random seed derived from them.

A *cell* is one entry of the paper's tables: method x data x missing type x rate, under one protocol.
A *trial* is one training run inside a cell: one mask (which entries are missing) and one seed (weights and dropout).
Nothing here imports torch, so a finished cell is recognised quickly.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pagnn_bench.config.content import FILES, content_of, read_files
from pagnn_bench.config.errors import refuse

# Keys that say where files are or how things are shown; they change no number, so they are not part of an identity.
# `recommended` and `published` enter method.* and protocol.* by interpolation and count there.
NOT_IDENTITY = frozenset(
    {"description", "label", "licence", "root", "path", "recommended", "published", "paper"}
)

# Keys that were added after results had been recorded, with the value that means the earlier behaviour: a cell with
# this value is the same cell as without the key.
LATER_KEYS: dict[str, dict[str, Any]] = {
    "data": {"standardise": False, "one_hot": []},
    "method": {
        "layers": 2,
        "keep": "best",
        "network": "gcn",
        "link": False,
        "random_columns": 0,
        "flag": "missing",
    },
    "protocol": {
        "decay": "all",
        "tuning": None,
        "precision": "float32",
        "dropout_rng": "host",
        "component": "all",
        "split": None,
    },
}

# Of dense inputs and their products; weights, optimiser and losses are always float32.
PRECISIONS = ("float32", "bfloat16")

# Top-level keys of a command that belong to the protocol of every cell.
TRAINING_KEYS = ("precision", "dropout_rng")

TRIES = "tuning"  # the protocol's name in the records of the settings that a search tried

MAX_INDICES = 100_000  # masks or seeds of one command: a typo should not fill the memory


def canonical_json(value: Any) -> str:
    """One text per value: sorted keys, no white space."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(value: Any, length: int = 64) -> str:
    """Hexadecimal SHA-256 of the canonical JSON of ``value``, cut to ``length`` characters."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]


def seed_for(purpose: str, **axes: str | int | float) -> int:
    """A 63-bit seed that depends only on the named axes.

    Two purposes, or two values of any axis, give unrelated streams; the order in which trials run does not matter.
    """
    return int(digest({"purpose": purpose, **axes}, 16), 16) >> 1


def parse_indices(key: str, value: Any) -> list[int]:
    """``masks`` and ``seeds``: a positive count n (indices 0..n-1) or a list of distinct non-negative indices."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        if value > MAX_INDICES:
            refuse(key, value, f"at most {MAX_INDICES} at once")
        return list(range(value))
    if isinstance(value, list) and value and all(type(i) is int and i >= 0 for i in value):
        if len(set(value)) == len(value):
            return sorted(value)
        refuse(key, value, "an index is named twice")
    refuse(key, value, "give a count of at least 1 or a list of indices such as [0,1,2]")


def parse_rate(value: Any) -> float:
    """The missing rate, a number in [0, 1)."""
    if type(value) in (int, float) and value >= 0 and (rate := round(float(value), 10)) < 1:
        return rate  # rounded, because range(0.1,0.9,0.2) contains 0.30000000000000004
    refuse("rate", value, "the missing rate is a number from 0 up to, but not including, 1")


def identity_part(group: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a group that tell one cell from another."""
    later = LATER_KEYS.get(group, {})
    elsewhere = NOT_IDENTITY.union(FILES) if group == "data" else NOT_IDENTITY
    return {
        key: value
        for key, value in config.items()
        if key not in elsewhere and not (key in later and value == later[key])
    }


def fold_training(config: Mapping[str, Any]) -> dict[str, Any]:
    """Move ``precision`` and ``dropout_rng``, top-level keys of a command, into the protocol.

    They become keys of the protocol only where they are not the default, so that all other cells stay as they were.
    """
    folded = {key: value for key, value in config.items() if key not in TRAINING_KEYS}
    defaults = LATER_KEYS["protocol"]
    changed = {key: config[key] for key in TRAINING_KEYS if config.get(key, defaults[key]) != defaults[key]}
    if changed and isinstance(config.get("protocol"), Mapping):
        folded["protocol"] = {**config["protocol"], **changed}
    return folded


def mask_axes(data: str, missing: str, rate: float, mask: int) -> dict[str, str | int | float]:
    """The axes of a mask's seed: all methods, protocols and splits see the same masks."""
    return {"data": data, "missing": missing, "rate": rate, "mask": mask}


@dataclass(frozen=True)
class Cell:
    """One entry of a table, as plain data (what the configuration resolves to).

    Attributes:
        method, data, missing, protocol: the resolved groups, each with a ``name``.
        rate: share of missing entries, in [0, 1).
    """

    method: dict[str, Any]
    data: dict[str, Any]
    missing: dict[str, Any]
    protocol: dict[str, Any]
    rate: float

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Cell:
        """Build a cell from the resolved top-level configuration (a plain mapping)."""
        config, groups = fold_training(config), {}
        for group in ("method", "data", "missing", "protocol"):
            name = config[group]["name"]
            # The name becomes part of a folder name; a number will do.
            if type(name) not in (str, int) or not re.fullmatch(r"[\w.+-]+", str(name)):
                refuse(f"{group}.name", name, "use letters, digits, dots, dashes and underscores only")
            groups[group] = {**config[group], "name": str(name)}
        data = groups["data"]
        if contents := read_files(data):
            # The user's own files are identified by their content: they may move, but must not change unnoticed.
            data["content"] = content_of(contents)
        if data.get("classes") and data.get("label") == data["classes"]:
            # In data=table, data.label is the column of classes; our tables show the name of the graph instead.
            data["label"] = data["name"]
        return cls(**groups, rate=parse_rate(config["rate"]))

    def description(self) -> dict[str, Any]:
        """The cell as plain data, enough to rebuild it anywhere: without the paths of files on this machine."""
        data = {key: value for key, value in self.data.items() if key not in ("root", *FILES)}
        groups = {"method": self.method, "missing": self.missing, "protocol": self.protocol}
        return {**groups, "data": data, "rate": self.rate}

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that can change a number, and only that."""
        groups = ("method", "data", "missing", "protocol")
        return {**{group: identity_part(group, getattr(self, group)) for group in groups}, "rate": self.rate}

    @cached_property
    def hash(self) -> str:
        return digest(self.identity, 12)

    @cached_property
    def id(self) -> str:
        """A readable and unique folder name: ``cora-type1-0.1-pagnn_n-paper-0123456789ab``."""
        parts = (self.data["name"], self.missing["name"], f"{self.rate:g}", self.method["name"])
        return "-".join((*parts, self.protocol["name"], self.hash))

    def __str__(self) -> str:
        return f"{self.method['name']} on {self.data['name']}, {self.missing['name']}, rate {self.rate:g}"

    def _mask_axes(self, mask: int) -> dict[str, str | int | float]:
        return mask_axes(self.data["name"], self.missing["name"], self.rate, mask)

    def mask_seed(self, mask: int) -> int:
        """Seed of the missing entries: data, type, rate and mask index; never the method."""
        return seed_for("mask", **self._mask_axes(mask))

    def split_seed(self, mask: int) -> int:
        """Seed of the split that belongs to a mask, if masks have splits: the same for every rate and method."""
        return seed_for("split", data=self.data["name"], seed=self.data["split_seed"], mask=mask)

    def method_seed(self, mask: int) -> int:
        """Seed of what a method learns once per mask (an imputation model): also depends on the method."""
        return seed_for("method", method=self.method["name"], **self._mask_axes(mask))

    def trial_seed(self, purpose: str, mask: int, seed: int) -> int:
        """Seed of one trial's own randomness; ``purpose`` is ``weights``, ``dropout`` or ``method``."""
        return seed_for(purpose, method=self.method["name"], seed=seed, **self._mask_axes(mask))
