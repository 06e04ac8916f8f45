"""Settings chosen on validation data: every method gets the same number of tries, per dataset, type and rate.

The tries are ordinary trials, recorded under the protocol ``tuning``: a killed search resumes where it was, and what
was tried can be looked up. The choice is made from the records, so it is the same wherever they are read.

A search has one or more *rungs*. Each trains the best settings of the previous rung with more seeds, so that most of
the trials go to settings that may win (successive halving).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from statistics import fmean
from typing import Any, TypeAlias

from pagnn_bench.config.errors import RequestError, refuse
from pagnn_bench.config.identity import TRIES, Cell, parse_indices, parse_rate, seed_for
from pagnn_bench.config.schema import Schema, Valid, whole
from pagnn_bench.records.store import Store

RANGES = ("uniform", "log_uniform")
FRUITLESS = 1000  # after this many draws in a row without a new setting, the space is exhausted
Config: TypeAlias = "dict[str, Any]"
Setting: TypeAlias = "dict[str, Any]"  # dotted key → value
Rung: TypeAlias = "tuple[int, int]"  # how many settings, how many seeds of each


def is_tuned(config: Mapping[str, Any]) -> bool:
    """Whether this configuration has settings that are yet to be chosen."""
    return config["protocol"].get("tuning") is not None


def pending_tries(config: Config, store: Store) -> list[Config]:
    """What to try next for one cell: the first unfinished rung; nothing once the search is over."""
    return _climb(config, store)[1]


def choose(config: Config, store: Store) -> Config:
    """The configuration with the best setting of the last rung of a finished search."""
    ranked, pending = _climb(config, store)
    if pending:
        raise ValueError("the search is not over")
    best, tuning = ranked[0], config["protocol"]["tuning"]
    chosen = _with(config, best, config["protocol"]["name"])
    chosen["protocol"]["tuning"] = {**tuning, "chosen": best}
    return chosen


def _climb(config: Config, store: Store) -> tuple[list[Setting], list[Config]]:
    """(the settings of the last finished rung, best first; the tries of the first unfinished one, if any)."""
    settings = _settings(config)
    for kept, seeds in _rungs(config["protocol"]["tuning"]):
        settings = settings[:kept]
        tries = [_try(config, setting, seeds) for setting in settings]
        scores = [_score(tried, store) for tried in tries]
        if None in scores:
            return settings, tries
        # The sort is stable: of equal settings the earlier one wins, and the very first is the published one.
        order = sorted(range(len(settings)), key=lambda k: -(scores[k] or 0.0))
        settings = [settings[k] for k in order]
    return settings, []


def _try(config: Config, setting: Setting, seeds: int) -> Config:
    mask = config["protocol"]["tuning"]["mask"]
    return {**_with(config, setting, TRIES), "masks": [mask], "seeds": seeds}


def _score(tried: Config, store: Store) -> float | None:
    """Mean validation accuracy of a setting; a trial that diverged counts as 0. None before all have ended."""
    recorded = store.load(Cell.from_config(tried))
    wanted = [recorded.get((tried["masks"][0], seed)) for seed in range(tried["seeds"])]
    ended = [trial for trial in wanted if trial is not None]
    if len(ended) < len(wanted):
        return None
    return fmean(trial.record["val_acc"] if trial.ok else 0.0 for trial in ended)


def _rungs(tuning: Mapping[str, Any]) -> list[Rung]:
    """The first rung has ``budget`` settings with ``seeds`` seeds each; those of ``rungs`` follow."""
    return [(tuning["budget"], tuning["seeds"]), *map(tuple, tuning.get("rungs") or [])]


def _settings(config: Config) -> list[Setting]:
    """The published setting and random others, ``budget`` in total, or the whole space if that is smaller."""
    tuning, method = config["protocol"]["tuning"], config["method"]["name"]
    _check(tuning)
    masks = parse_indices("masks", config["masks"])
    if tuning["mask"] in masks and not tuning.get("reported_mask", False):
        raise RequestError(
            f"protocol.tuning.mask={tuning['mask']}: masks={config['masks']} contains it, too; "
            "search on a mask that is not reported."
        )
    space = {**tuning["space"], **(tuning.get("own") or {}).get(method, {})}
    for key, values in space.items():
        _check_values(key, values)
    space = {key: values for key, values in space.items() if not _is_absent(config, key, tuning)}
    settings = [{key: _get(config, key) for key in space}]
    for drawn in _draws(config, space):
        if len(settings) == tuning["budget"]:
            break
        settings.append(drawn)
    return settings


def _draws(config: Config, space: Mapping[str, Any]) -> Iterator[Setting]:
    """Distinct random settings other than the published one, which depend on the cell and the space, not the budget."""
    axes: dict[str, str | int | float] = {
        group: config[group]["name"] for group in ("method", "data", "missing")
    }
    axes["rate"] = parse_rate(config["rate"])
    seen, number, fruitless = [{key: _get(config, key) for key in space}], 0, 0
    while fruitless < FRUITLESS:
        setting = {
            key: _drawn(values, seed_for("tuning", key=key, draw=number, **axes) / 2**63)
            for key, values in space.items()
        }
        number += 1
        fruitless += 1
        if setting not in seen:
            seen.append(setting)
            fruitless = 0
            yield setting


def _drawn(values: Any, share: float) -> Any:
    """The value of a list or range at a share in [0, 1); from a range, rounded to three digits."""
    if isinstance(values, list):
        return values[int(share * len(values))]
    [(kind, (low, high))] = values.items()
    value = low + share * (high - low) if kind == "uniform" else low * (high / low) ** share
    return float(f"{value:.3g}")


def _check(tuning: Any) -> None:
    """Refuse a search that makes no sense."""
    _KEYS.check("protocol.tuning", tuning)
    _SPACE.check("protocol.tuning.space", tuning.get("space"))
    own = _SPACE.check("protocol.tuning.own", tuning.get("own") or {})
    for method, space in own.items():
        _SPACE.check(f"protocol.tuning.own.{method}", space)
    for key, valid in COUNTS.items():
        valid.check(f"protocol.tuning.{key}", tuning.get(key))
    rungs = tuning.get("rungs") or []
    _RUNGS.check("protocol.tuning.rungs", rungs)
    # The trials of one rung are part of the next.
    if any(b[0] > a[0] or b[1] < a[1] for a, b in pairwise(_rungs(tuning))):
        refuse("protocol.tuning.rungs", rungs, _RUNGS.choices)


def _is_pair(rung: Any) -> bool:
    return isinstance(rung, list) and len(rung) == 2 and all(map(whole(1).accepts, rung))


COUNTS: Schema = {"budget": whole(1), "mask": whole(0), "seeds": whole(1)}
_KEYS = Valid(lambda value: isinstance(value, Mapping), "give its keys, such as protocol.tuning.budget=20")
_SPACE = Valid(lambda value: isinstance(value, Mapping), "give lists of values by key")
_RUNGS = Valid(
    lambda value: isinstance(value, list) and all(map(_is_pair, value)),
    "give pairs of settings and seeds, ever fewer settings with more seeds",
)


def _check_values(key: str, values: Any) -> None:
    if isinstance(values, list) and values:
        return
    if isinstance(values, Mapping) and len(values) == 1:
        [(kind, ends)] = values.items()
        numbers = isinstance(ends, list) and len(ends) == 2 and all(type(n) in (int, float) for n in ends)
        if kind in RANGES and numbers and ends[0] < ends[1] < math.inf and (kind == "uniform" or ends[0] > 0):
            return
    raise RequestError(
        f"protocol.tuning: {key}={values}: give a list of values, or a range such as {{log_uniform: [1e-4, 1e-1]}}."
    )


def _is_absent(config: Config, key: str, tuning: Mapping[str, Any]) -> bool:
    """Whether this method lacks a key of the common space (GCNmf has no input_dropout)."""
    group, _, name = key.partition(".")
    return key in tuning["space"] and group == "method" and name not in config["method"]


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
