"""``protocol=tuned``: every method gets the same number of tries on validation data, per dataset, type and rate.

The tries are trials like any others, recorded under the protocol ``tuning`` on a mask that no result is reported for: a
search that is killed goes on where it was, and what was tried can be looked up. The choice is made from the records, so
it is the same wherever they are read.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, TypeAlias

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import TRIES, Cell, digest, parse_indices, parse_rate
from pagnn_bench.records.store import Store

Config: TypeAlias = "dict[str, Any]"
Setting: TypeAlias = "dict[str, Any]"  # dotted key → value


def is_tuned(config: Mapping[str, Any]) -> bool:
    """Whether this configuration asks for settings that are yet to be chosen."""
    return "tuning" in config["protocol"]


def tries(config: Config) -> list[Config]:
    """The configurations to be compared for one cell."""
    tuning = config["protocol"]["tuning"]
    return [
        {**_with(config, setting, TRIES), "masks": [tuning["mask"]], "seeds": tuning["seeds"]}
        for setting in _settings(config)
    ]


def choose(config: Config, store: Store) -> Config:
    """The configuration with the setting whose tries have the highest mean validation accuracy.

    A trial that diverged counts as accuracy 0; of equal settings the first wins, which begins with the paper's own.
    """
    tuning = config["protocol"]["tuning"]
    settings = _settings(config)
    scores = [_score(tried, store) for tried in tries(config)]
    best = settings[scores.index(max(scores))]
    chosen = _with(config, best, config["protocol"]["name"])
    chosen["protocol"]["tuning"] = {**tuning, "chosen": best}
    return chosen


def is_searched(config: Config, store: Store) -> bool:
    """Whether all tries of a cell have ended, be it by diverging."""
    return all(
        {(tried["masks"][0], seed) for seed in range(tried["seeds"])}
        <= store.load(Cell.from_config(tried)).keys()
        for tried in tries(config)
    )


def _score(tried: Config, store: Store) -> float:
    recorded = store.load(Cell.from_config(tried))
    wanted = [recorded[tried["masks"][0], seed] for seed in range(tried["seeds"])]
    return fmean(trial.record["val_acc"] if trial.ok else 0.0 for trial in wanted)


def _settings(config: Config) -> list[Setting]:
    """The paper's setting and random others, ``budget`` in all, or the whole space if that is smaller."""
    tuning, method = config["protocol"]["tuning"], config["method"]["name"]
    _check(tuning)
    if tuning["mask"] in parse_indices("masks", config["masks"]):
        raise RequestError(
            f"protocol.tuning.mask={tuning['mask']}: masks={config['masks']} has it, too; "
            "search on a mask that is not reported."
        )
    space = {**tuning["space"], **(tuning.get("own") or {}).get(method, {})}
    for key, values in space.items():
        if not isinstance(values, list) or not values:
            raise RequestError(f"protocol.tuning: {key}={values}: give a list of values.")
    usual = {key: _get(config, key) for key in space}
    others = [
        setting
        for values in itertools.product(*space.values())
        if (setting := dict(zip(space, values))) != usual
    ]
    # Sorted by their digests, settings are in an order as good as random, and the same everywhere.
    axes = [method, config["data"]["name"], config["missing"]["name"], parse_rate(config["rate"])]
    others.sort(key=lambda setting: digest(["tuning", *axes, setting]))
    return [usual, *others[: tuning["budget"] - 1]]


def _check(tuning: Any) -> None:
    """Refuse a search that makes no sense."""
    if not isinstance(tuning, Mapping):
        raise RequestError(f"protocol.tuning={tuning}: give its keys, such as protocol.tuning.budget=20.")
    spaces = {"space": tuning.get("space"), "own": tuning.get("own") or {}}
    if isinstance(spaces["own"], Mapping):
        spaces |= {f"own.{method}": space for method, space in spaces["own"].items()}
    for key, space in spaces.items():
        if not isinstance(space, Mapping):
            raise RequestError(f"protocol.tuning.{key}={space}: give lists of values by key.")
    for key in ("budget", "mask", "seeds"):
        least = 0 if key == "mask" else 1
        if type(tuning.get(key)) is not int or tuning[key] < least:
            raise RequestError(
                f"protocol.tuning.{key}={tuning.get(key)}: give a whole number of at least {least}."
            )


def _get(config: Config, key: str) -> Any:
    group, _, name = key.partition(".")
    if group not in ("method", "protocol") or name not in config[group]:
        raise RequestError(f"protocol.tuning: {config['method']['name']} has no key {key}.")
    return config[group][name]


def _with(config: Config, setting: Setting, protocol: str) -> Config:
    changed = copy.deepcopy(config)
    for key, value in setting.items():
        group, _, name = key.partition(".")
        changed[group][name] = value
    del changed["protocol"]["tuning"]
    changed["protocol"]["name"] = protocol
    return changed


def all_tries(configs: Sequence[Config]) -> list[Config]:
    """What has to be tried before the tuned ones among these configurations can be run."""
    return [tried for config in configs if is_tuned(config) for tried in tries(config)]
