"""What tells cells of the same name apart: settings that differ from the defaults in ``conf`` or of a plug-in.

A cell whose settings are all default is called ``pagnn_n`` on ``cora`` under ``paper``. Anything else is part of the
name, as in ``pagnn_n[hidden=32]`` or ``cora[split=random]``, so that two settings never share an entry of a table.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pagnn_bench.config.identity import LATER_KEYS, NOT_IDENTITY, TRIES, Cell, canonical_json, identity_part
from pagnn_bench.config.plugins import PACKAGED, plug_ins

GROUPS = ("method", "data", "missing", "protocol")
LONGEST_VALUE = 24  # a checksum need not be shown in full
UNKNOWN = object()


def find_variants(cells: Iterable[Cell]) -> dict[str, dict[str, str]]:
    """For every cell (by hash) and every group the settings that are not default, as ``"hidden=32,bias=false"``.

    A method that ``conf`` does not have (one of the user's own) has as its default what most of its cells on that
    dataset have, leaving out the tries of a search. A protocol that ``conf`` does not have (of an experiment) has no
    default for settings that vary on one dataset: no point of a grid is the usual one, so all of them are named.
    """
    cells = list(cells)
    by_group = {group: _differences(group, cells) for group in GROUPS}
    return {cell.hash: {group: by_group[group][cell.hash] for group in GROUPS} for cell in cells}


def _differences(group: str, cells: Sequence[Cell]) -> dict[str, str]:
    """For every cell (by hash) the settings of one group that are not default."""
    namesakes: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        namesakes[getattr(cell, group)["name"], cell.data["name"]].append(cell)
    varying: dict[str, set[str]] = defaultdict(set)
    if group == "protocol":
        for (name, _), same in namesakes.items():
            varying[name] |= _varying([_settings("protocol", cell.protocol) for cell in same])
    differences: dict[str, str] = {}
    for (name, _), same in namesakes.items():
        reported = [cell for cell in same if cell.protocol["name"] != TRIES] or same
        usual = _most_common(_settings(group, getattr(cell, group)) for cell in reported)
        usual = {key: value for key, value in usual.items() if key not in varying[name]}
        # The checksum of the user's own files need be shown only if there are several graphs of this name.
        contents = {getattr(cell, group).get("content") for cell in same}
        for cell in same:
            settings = _settings(group, getattr(cell, group))
            default = {**(_defaults(cell, group) or usual)}
            if len(contents) == 1 and "content" in settings:
                default["content"] = settings["content"]
            default |= _chosen(cell, group, settings)
            # A cell without a later key has the value that means the earlier behaviour.
            earlier = {key: value for key, value in LATER_KEYS.get(group, {}).items() if key in default}
            differences[cell.hash] = _difference({**earlier, **settings}, default)
    return differences


def _varying(settings: Sequence[dict[str, Any]]) -> set[str]:
    """The keys whose value is not the same in all of these."""
    keys = {key for each in settings for key in each}
    return {key for key in keys if len({canonical_json(each.get(key)) for each in settings}) > 1}


def set_apart(cells: Iterable[Cell]) -> dict[str, str]:
    """For every cell (by hash) all its settings that are not default, as one text; often empty."""
    return {key: ", ".join(filter(None, groups.values())) for key, groups in find_variants(cells).items()}


def _chosen(cell: Cell, group: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that ``protocol=tuned`` chose for a cell, which count as default under this protocol."""
    chosen = [name for name in settings if name.startswith("tuning.chosen.")] if group == "protocol" else []
    of_group = (cell.protocol.get("tuning") or {}).get("chosen", {})
    chosen += [name for name in settings if f"{group}.{name}" in of_group]
    return {name: settings[name] for name in chosen}


def _settings(group: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a group that are part of its identity, flat: nested keys joined by dots."""
    return _flat(identity_part(group, config))


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            flat |= {f"{key}.{inner}": content for inner, content in _flat(value).items()}
        else:
            flat[key] = value
    return flat


def _most_common(settings: Iterable[dict[str, Any]]) -> dict[str, Any]:
    counted = Counter(map(canonical_json, settings))
    common: dict[str, Any] = json.loads(counted.most_common(1)[0][0])
    return common


def _defaults(cell: Cell, group: str) -> dict[str, Any] | None:
    """The packaged settings of a group, with what they take from the cell's other groups filled in; None if unknown.

    What a packaged dataset recommends is read from its file and not from the cell: settings recommended by another
    version, or by the person who ran it, are not the default.
    """
    packaged = _packaged(group, getattr(cell, group)["name"])
    if not packaged:
        return None
    recommended = _file("data", cell.data["name"]).get("recommended")
    data = {**cell.data, "recommended": recommended} if recommended else cell.data
    # A method and a protocol take only their published settings from each other.
    groups: dict[str, Any] = {
        name: {"published": _published(name, getattr(cell, name))} for name in ("method", "protocol")
    }
    resolved = _resolved(group, canonical_json({**groups, "data": data, group: packaged}))
    # What refers to something that only a run knows counts as default.
    given = _settings(group, getattr(cell, group))
    return {key: given.get(key) if value is UNKNOWN else value for key, value in resolved.items()}


def _published(group: str, config: Mapping[str, Any]) -> Any:
    """The key ``published`` of a group: as packaged, or as recorded if nothing is packaged under its name."""
    return (_packaged(group, config["name"]) or config).get("published", {})


@cache
def _resolved(group: str, groups: str) -> dict[str, Any]:
    """The settings of a group of a configuration (JSON), interpolations filled in."""
    config, settings = OmegaConf.create(json.loads(groups)), {}
    for key in config[group]:
        if key in NOT_IDENTITY:
            continue
        try:
            value = OmegaConf.select(config, f"{group}.{key}")
            settings[key] = (
                OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
            )
        except OmegaConfBaseException:
            settings[key] = UNKNOWN
    return _settings(group, settings)


@cache
def _packaged(group: str, name: str) -> dict[str, Any]:
    """The configuration of a choice, with the files that it builds on; empty if there is none."""
    content = dict(_file(group, name))
    config: dict[str, Any] = {}
    for entry in content.pop("defaults", []):
        if isinstance(entry, str) and entry != "_self_":
            config |= _packaged(group, entry.partition("@")[0])
    return config | content


@cache
def _file(group: str, name: str) -> dict[str, Any]:
    """The content of the file of a choice, ours or that of a plug-in; empty if there is none."""
    file = PACKAGED.joinpath(group, f"{name}.yaml")
    if file.is_file():
        content: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
        return content
    return plug_ins(group).get(name, {})


def _difference(settings: Mapping[str, Any], default: Mapping[str, Any]) -> str:
    # A mapping that is empty by default counts as changed, not as unset, once it has keys.
    filled = {key for key in default if default[key] == {} and any(k.startswith(f"{key}.") for k in settings)}
    default = {key: value for key, value in default.items() if key not in filled}
    changed: dict[str, str] = {}
    for key in {*settings, *default}:
        if key not in settings:
            # If a whole mapping is absent (protocol.tuning=null), its own name says enough.
            root = key.partition(".")[0]
            present = any(name.partition(".")[0] == root for name in settings)
            changed[key if present else root] = "unset"
        elif key not in default or not _same(settings[key], default[key]):
            changed[key] = _show(settings[key])
    return ",".join(f"{key}={changed[key]}" for key in sorted(changed))


def _same(first: Any, second: Any) -> bool:
    """Equal in the identity of a cell, where 0, 0.0 and false are three different values."""
    return canonical_json(first) == canonical_json(second)


def _show(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    text = value if isinstance(value, str) else canonical_json(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:8]}…"
