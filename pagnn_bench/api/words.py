"""From the arguments of a Python call to the words of a command line, and on to configurations."""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from hydra.core.global_hydra import GlobalHydra
from hydra.core.singleton import Singleton

from pagnn_bench.config.catalogue import check_folder
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import fold_training
from pagnn_bench.config.sentences import in_one_sentence
from pagnn_bench.config.sweep import compose_combinations

Key: TypeAlias = (
    "str | int | float | bool | Sequence[Any] | Mapping[str, Any] | os.PathLike[str] | np.generic | None"
)

# For these keys, a list means one cell for each value; for all others, the list is the value.
SWEPT = frozenset({"method", "data", "missing", "protocol", "rate", "experiment"})
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]*")
_WORDS_OF_HYDRA = frozenset({"true", "false", "null", "nan", "inf", "yes", "no", "on", "off"})


def configurations(
    words: Sequence[str], keys: Mapping[str, Key], config_dir: str | os.PathLike[str] | None = None
) -> list[dict[str, Any]]:
    """The configuration of every combination that a call requests. Leaves Hydra as it was found.

    Args:
        words: as on the command line, such as ``"protocol.lr=0.01"``; they come after ``keys``, so they win.
        keys: ``rate=0.5``, ``method=["mf", "fp"]``; two underscores stand for the dot, ``protocol__lr=0.01``.
        config_dir: a folder with the user's own methods or data.
    """
    folder = checked_folder(config_dir)
    with in_one_sentence(), hydra_as_it_was():
        configs = compose_combinations(words_of(words, keys), multirun=True, folder=folder)
    return [fold_training(config) for config in configs]


def words_of(words: Sequence[str], keys: Mapping[str, Key]) -> list[str]:
    """The words of a command line that these arguments stand for."""
    for word in words:
        if not isinstance(word, str) or "=" not in word:
            raise RequestError(f"{word!r}: give 'KEY=VALUE' as a string, or key=value as an argument.")
    return [*(_word(key.replace("__", "."), value) for key, value in keys.items()), *words]


def checked_folder(config_dir: str | os.PathLike[str] | None) -> str | None:
    """The folder with the user's own methods or data; refuses one that cannot be read."""
    folder = None if config_dir is None else os.fspath(config_dir)
    if folder is not None:
        check_folder(folder)
    return folder


@contextmanager
def hydra_as_it_was() -> Iterator[None]:
    """Restore Hydra's state, which it keeps in singletons, for a notebook or program that uses Hydra as well."""
    state = Singleton.get_state()
    GlobalHydra.instance().clear()  # Hydra serves one program at a time
    try:
        yield
    finally:
        Singleton.set_state(state)


def _word(key: str, value: Key) -> str:
    """The word that an argument stands for."""
    if key in SWEPT and isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        if not len(value):
            raise RequestError(f"{key}=[]: give at least one value.")
        return f"{key}={','.join(map(text_of, value))}"
    return f"{key}={text_of(value)}"


def text_of(value: Any) -> str:
    """A Python value in the grammar of Hydra's overrides."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        return f"[{','.join(map(text_of, value))}]"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}:{text_of(content)}' for key, content in value.items())}}}"
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        raise RequestError(
            f"{reprlib.repr(value)}: give a string, a number, True, False, None or a list of these; name a module by "
            "its path, such as 'mine.MyGNN', and a graph by its file."
        )
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS_OF_HYDRA:
        return text
    # Inside quotes, a backslash escapes only before a quote or at the very end.
    quoted = re.sub(r"(\\*)'", lambda found: 2 * found[1] + r"\'", text)
    ending = len(quoted) - len(quoted.rstrip("\\"))
    return f"'{quoted}{ending * chr(92)}'"
