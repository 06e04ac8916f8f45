"""``pagnn-bench run``: its command line, read as Hydra reads it."""

from __future__ import annotations

import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import hydra
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from pagnn_bench.cli.closing import show_results
from pagnn_bench.config.catalogue import check_folder
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import fold_precision
from pagnn_bench.config.sweep import compose_combinations
from pagnn_bench.engine.runner import run


def run_command(arguments: list[str]) -> int:
    """``run``: all combinations become one plan; --help, --cfg, --info and completion are Hydra's own."""
    # Hydra's parser takes overrides in one piece only; moved to the end, they may stand on both sides of a flag.
    arguments = sorted(
        arguments, key=lambda word: not word.startswith("-") and ("=" in word or word.startswith("~"))
    )
    flags = _parse_flags(arguments)
    if flags.config_dir is not None:
        check_folder(flags.config_dir)
    try:
        if flags.help or flags.hydra_help or flags.cfg or flags.info or flags.shell_completion:
            return _show(arguments)
        configs = compose_combinations(flags.overrides, flags.multirun, flags.config_dir, flags.config_name)
        return run([fold_precision(config) for config in configs], show_results)
    except (HydraException, OmegaConfBaseException) as error:
        raise RequestError(_one_sentence(error)) from error
    except PermissionError as error:
        raise RequestError(f"{error.filename}: cannot be read ({error.strerror}).") from error
    except YAMLError as error:
        raise RequestError(f"--config-dir: a file is not YAML ({' '.join(str(error).split())}).") from error


def _show(arguments: list[str]) -> int:
    """Let Hydra answer a question about the configuration."""

    @hydra.main(config_path="pkg://pagnn_bench.conf", config_name="config", version_base="1.3")
    def job(config: DictConfig) -> None:
        raise AssertionError("nothing is run where something is only shown")

    try:
        with _as_hydra_expects(arguments):
            job()
    except SystemExit as exit_:  # the end of --help
        return exit_.code if isinstance(exit_.code, int) else 1
    return 0


@contextmanager
def _as_hydra_expects(arguments: list[str]) -> Iterator[None]:
    """A command line without the subcommand, and errors as exceptions: Hydra would print them and exit with 1."""
    saved_arguments, saved_variable = sys.argv, os.environ.get("HYDRA_FULL_ERROR")
    sys.argv = ["pagnn-bench", *arguments]
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        yield
    finally:
        sys.argv = saved_arguments
        del os.environ["HYDRA_FULL_ERROR"]
        if saved_variable is not None:
            os.environ["HYDRA_FULL_ERROR"] = saved_variable


def _parse_flags(arguments: list[str]) -> Namespace:
    """Hydra's flags; refuses in one sentence those that Hydra would answer with its whole usage or with a traceback."""
    from hydra._internal.utils import get_args_parser

    def refuse(message: str) -> NoReturn:
        raise RequestError(f"run: {message}; `pagnn-bench run --help` shows the flags.")

    parser = get_args_parser()
    parser.error = refuse  # type: ignore[method-assign]
    flags = parser.parse_args(arguments)
    modes = {"-m": flags.multirun, "--cfg": flags.cfg, "--info": flags.info, "-sc": flags.shell_completion}
    chosen = [flag for flag, value in modes.items() if value]
    if len(chosen) > 1:
        raise RequestError(f"run {' '.join(chosen)}: one of these at a time.")
    if flags.resolve and not (flags.cfg or flags.help):
        raise RequestError("run --resolve: goes with --cfg only.")
    if flags.config_path or flags.experimental_rerun:
        raise RequestError("run: --config-dir DIR adds choices of your own; no other place is read.")
    return flags


def _one_sentence(error: Exception) -> str:
    """What was wrong with a key or a value, without Hydra's advice to programmers."""
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
    """Advice for a value with characters that Hydra keeps for itself, such as those of a path."""
    key, equals, value = word.partition("=")
    return f"""; in quotes it can: '{key}="{value}"'""" if equals and re.search(r"[~() ]", value) else ""


def complete_run(arguments: list[str], line: str) -> int:
    """Hydra's shell completion of the keys and values of ``run``; Hydra knows no subcommands, so it is taken out."""
    os.environ["COMP_LINE"] = re.sub(r"^\s*(\S+)\s+run\b", r"\1", line)
    with suppress(RequestError):  # what is being typed may not make sense yet
        return run_command(arguments)
    return 0
