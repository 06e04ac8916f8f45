"""From the words of a command line to the configuration of every combination.

Hydra composes a configuration in about 0.15 s, and its own multirun composes every combination twice: half a minute for
a hundred combinations. Yet most combinations differ in plain values (``rate=0.1,0.3``) or in choices that do not affect
each other (``method=mf,vae data=cora,citeseer``). So Hydra composes each choice once, the results are combined, and
plain values are set last, as Hydra does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias, cast

from hydra import compose, initialize_config_module
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, MissingMandatoryValue

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.plugins import ENTRY_POINTS, plug_ins

NO_EXPERIMENT = ("experiment=null", "experiment=")  # the default, written out
Tree: TypeAlias = "dict[str, Any]"  # a configuration as plain data, interpolations not yet resolved


def compose_combinations(
    overrides: Sequence[str], multirun: bool = False, folder: str | None = None, name: str | None = None
) -> list[Tree]:
    """The resolved configuration of every combination, in Hydra's order.

    Args:
        overrides: KEY=VALUE words; several values only in a multirun.
        multirun: whether ``-m`` was given; an experiment may also set it.
        folder: a folder with the user's own choices (``--config-dir``), which must exist.
        name: the primary configuration (``--config-name``).
    """
    if folder is not None:
        path = os.path.abspath(folder).replace("\\", r"\\").replace("'", r"\'")  # as Hydra quotes
        overrides = [*overrides, f"hydra.searchpath=['file://{path}']"]
    offer_plug_ins()
    with initialize_config_module("pagnn_bench.conf", version_base="1.3", job_name="pagnn-bench"):
        return _Composer(name or "config").all(list(overrides), multirun)


def with_several_values(words: Sequence[str]) -> list[str]:
    """The words with more than one value, such as ``rate=0.1,0.5``."""
    parser = OverridesParser.create()
    return [word for word in words if parser.parse_overrides([word])[0].is_sweep_override()]


def offer_plug_ins() -> None:
    """Let Hydra also choose among methods and datasets of other packages; our files and those of --config-dir win."""
    for group in ENTRY_POINTS:
        for name, content in plug_ins(group).items():
            ConfigStore.instance().store(group=group, name=name, node=OmegaConf.create(content))


class _Composer:
    """Composes each choice once and assembles combinations from them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.loader = GlobalHydra.instance().config_loader()
        self.parser = OverridesParser.create(self.loader)
        self.parse = cache(lambda word: self.parser.parse_overrides([word])[0])
        # Hydra searches all configuration files for every question, so ask about each word once.
        self.is_choice = cache(self._is_choice)
        self.check_choice = cache(self._check_choice)
        self.trees: dict[tuple[str, ...], Tree] = {}  # composed by Hydra, by choices
        self.base: tuple[str, ...] | None = None  # the choices of the first combination

    def all(self, words: list[str], multirun: bool) -> list[Tree]:
        """The configurations of all combinations of these words."""
        words = [word for word in words if word not in NO_EXPERIMENT]
        if multirun and (several := self._each_experiment(words)):
            # Each has its own axes, so treat each as a separate command.
            return [tree for single in several for tree in _Composer(self.name).all(single, multirun)]
        swept = [word for word in words if self.parse(word).is_sweep_override()]
        fixed = tuple(word for word in words if word not in swept and self.is_choice(word))
        config = self._compose_fixed(fixed)
        if multirun or config.hydra.mode == RunMode.MULTIRUN:
            axes = [f"{key}={value}" for key, value in (config.hydra.sweeper.params or {}).items()]
            return [self._combination(combination) for combination in self._split([*axes, *words])]
        if swept:
            compose(self.name, words)  # raises Hydra's error about several values
        self.trees[fixed] = {key: value for key, value in _tree(config).items() if key != "hydra"}
        return [self._combination(words)]

    def _compose_fixed(self, choices: tuple[str, ...]) -> DictConfig:
        """The configuration of these choices with Hydra's own keys, which hold the axes of an experiment."""
        for word in choices:
            self.check_choice(word)
        config = compose(self.name, list(choices), return_hydra_config=True)
        HydraConfig.instance().set_config(config)  # for ${hydra:...} in the user's configurations
        return config

    def _split(self, words: list[str]) -> list[list[str]]:
        """The words of every combination, in Hydra's order."""
        [combinations] = BasicSweeper.split_arguments([self.parse(word) for word in words], None)
        return combinations

    def _each_experiment(self, words: list[str]) -> list[list[str]]:
        """The words with one experiment each, if they name several."""
        for place, word in enumerate(words):
            override = self.parse(word)
            if override.key_or_group == "experiment" and override.is_sweep_override():
                return [[*words[:place], single, *words[place + 1 :]] for [single] in self._split([word])]
        return []

    def _check_choice(self, word: str) -> None:
        """Refuse what cannot be the name of a choice: Hydra would take the last of a list, and crash at a number."""
        override = self.parse(word)
        if not override.key_or_group:  # `=3`; Hydra would look for a choice of that name
            raise RequestError(f"{word}: cannot be read as KEY=VALUE.")
        options = self.loader.get_group_options(override.key_or_group)
        if not options or override.is_hydra_override() or override.type == OverrideType.DEL:
            return
        if not isinstance(override.value(), str):
            key, _, given = word.partition("=")
            several = f"; several with -m {key}={given[1:-1]}" if given.startswith("[") else ""
            raise RequestError(f"{word}: choose one of {', '.join(options)}{several}.")

    def _combination(self, words: list[str]) -> Tree:
        for word in words:
            self.check_choice(word)
        choices = tuple(word for word in words if self.is_choice(word))
        values = [self.parse(word) for word in words if not self.is_choice(word)]
        return _resolved(self._assembled(choices), values)

    def _assembled(self, choices: tuple[str, ...]) -> Tree:
        """The tree of these choices, assembled from trees that differ from the base in one choice each.

        If one of these choices changes more than its own group, Hydra composes all of them together.
        """
        self.base = self.base or choices
        tree = self._composed(self.base)
        if len(choices) != len(self.base):
            return self._composed(choices)
        parts: Tree = {}
        for place, (base_word, word) in enumerate(zip(self.base, choices)):
            if word == base_word:
                continue
            group = word.partition("=")[0]
            alone = self._composed((*self.base[:place], word, *self.base[place + 1 :]))
            if any(alone.get(key) != tree.get(key) for key in alone.keys() | tree.keys() if key != group):
                return self._composed(choices)
            parts[group] = alone.get(group)
        return {**tree, **parts}

    def _composed(self, choices: tuple[str, ...]) -> Tree:
        if choices not in self.trees:
            self.trees[choices] = _tree(compose(self.name, list(choices)))
        return self.trees[choices]

    def _is_choice(self, word: str) -> bool:
        """Whether Hydra needs this word when it composes; a plain value of an existing key can be set later."""
        override = self.parse(word)
        plain = override.type == OverrideType.CHANGE and override.package is None
        return (
            not plain
            or override.is_hydra_override()
            or bool(self.loader.get_group_options(override.key_or_group))
        )


def _tree(config: DictConfig) -> Tree:
    return cast(Tree, OmegaConf.to_container(config, resolve=False))


def _open_empty(config: DictConfig, key: str) -> None:
    """Allow new keys in a mapping that a file leaves empty (``method.args: {}``)."""
    for name in (key, key.rpartition(".")[0]):
        node = OmegaConf.select(config, name, throw_on_resolution_failure=False)
        if isinstance(node, DictConfig) and not node:
            OmegaConf.set_struct(node, False)


def _resolved(tree: Tree, values: Sequence[Override] = ()) -> Tree:
    config = OmegaConf.create(tree)
    OmegaConf.set_struct(config, True)
    for override in values:
        key, value = override.key_or_group, override.value()
        _open_empty(config, key)
        default = OmegaConf.select(config, key, throw_on_resolution_failure=False)
        # 0 and 0.0 are one setting, so they must be one cell.
        if type(value) is int and isinstance(default, float):
            value = float(value)
        elif type(value) is float and type(default) is int and value.is_integer():
            value = int(value)
        try:
            OmegaConf.update(config, key, value, merge=True)
        except (ConfigKeyError, ConfigAttributeError) as error:
            raise RequestError(
                f"{key}: there is no such key; `pagnn-bench run --cfg job` shows all keys."
            ) from error
    try:
        return cast(Tree, OmegaConf.to_container(config, resolve=True, throw_on_missing=True))
    except MissingMandatoryValue as error:
        raise RequestError(f"{error.full_key}: there is no default; give {error.full_key}=VALUE.") from error
