"""The errors of Hydra, OmegaConf and YAML, turned into the one sentence of a :class:`RequestError`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from pagnn_bench.config.errors import RequestError


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Turn the errors of a block in which a configuration is composed into a :class:`RequestError`."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise RequestError(_one_sentence(error)) from error
    except PermissionError as error:
        raise RequestError(f"{error.filename}: cannot be read ({error.strerror}).") from error
    except YAMLError as error:
        raise RequestError(f"--config-dir: a file is not YAML ({' '.join(str(error).split())}).") from error


def _one_sentence(error: Exception) -> str:
    """What was wrong with a key or a value, without Hydra's advice for programmers."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options:
        group, _, name = error.missing_cfg_file.rpartition("/")
        return f"{group}={name}: choose one of {', '.join(error.options)}."
    if isinstance(error, OverrideParseException):
        return f"{error.override}: cannot be read as KEY=VALUE{_how_to_quote(error.override or '')}."
    text = str(error)
    if unknown := re.match(r"Could not override .*use \+(.*)", text, re.DOTALL):
        return f"{unknown[1]}: there is no such key; `pagnn-bench run --cfg job` shows all keys."
    if several := re.match(r"Ambiguous value for argument '(.*?)'\n", text):
        key, _, values = several[1].partition("=")
        as_list = f", or write a list as {key}=[{values}]" if key in ("masks", "seeds") else ""
        return f"{several[1]}: add -m to run each of these{as_list}."
    if unresolved := re.match(r"(Interpolation .*?)\s+full_key: (\S+)", text, re.DOTALL):
        return f"{unresolved[2]}: {unresolved[1]}."
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


def _how_to_quote(word: str) -> str:
    """Advice for a value with characters that Hydra reserves, such as those of a path."""
    key, equals, value = word.partition("=")
    return f"""; in quotes it can: '{key}="{value}"'""" if equals and re.search(r"[~() ]", value) else ""
