"""``pagnn-bench run``: its command line, parsed as by Hydra."""

from __future__ import annotations

import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import hydra
from omegaconf import DictConfig

from pagnn_bench.api.closing import show_results
from pagnn_bench.config.catalogue import check_folder
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import fold_training
from pagnn_bench.config.sentences import in_one_sentence
from pagnn_bench.config.sweep import compose_combinations, offer_plug_ins
from pagnn_bench.engine.runner import run


def run_command(arguments: list[str]) -> int:
    """Train all combinations as one plan; --help, --cfg, --info and completion are Hydra's own."""
    # Hydra's parser wants all overrides side by side; moving them to the end lets users put flags between them.
    arguments = sorted(
        arguments, key=lambda word: not word.startswith("-") and ("=" in word or word.startswith("~"))
    )
    flags = _parse_flags(arguments)
    if flags.config_dir is not None:
        check_folder(flags.config_dir)
    with in_one_sentence():
        if flags.help or flags.hydra_help or flags.cfg or flags.info or flags.shell_completion:
            return _show(arguments)
        configs = compose_combinations(flags.overrides, flags.multirun, flags.config_dir, flags.config_name)
        return run([fold_training(config) for config in configs], show_results)


def _show(arguments: list[str]) -> int:
    """Let Hydra answer a question about the configuration."""

    @hydra.main(config_path="pkg://pagnn_bench.conf", config_name="config", version_base="1.3")
    def job(config: DictConfig) -> None:
        raise AssertionError("Hydra must only show the configuration, not run it")

    offer_plug_ins()
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
    """Hydra's flags; one sentence for mistakes that Hydra would answer with its whole usage or a traceback."""
    from hydra._internal.utils import get_args_parser

    def refuse(message: str) -> NoReturn:
        raise RequestError(f"run: {message}; `pagnn-bench run --help` shows the flags.")

    parser = get_args_parser()
    parser.error = refuse  # type: ignore[method-assign]
    flags = parser.parse_args(arguments)
    modes = {"-m": flags.multirun, "--cfg": flags.cfg, "--info": flags.info, "-sc": flags.shell_completion}
    chosen = [flag for flag, value in modes.items() if value]
    if len(chosen) > 1:
        raise RequestError(f"run {' '.join(chosen)}: give one of these at a time.")
    if flags.resolve and not (flags.cfg or flags.help):
        raise RequestError("run --resolve: works with --cfg only.")
    if flags.config_path or flags.experimental_rerun:
        raise RequestError("run: use --config-dir DIR to add your own choices; no other folder is read.")
    return flags


def complete_run(arguments: list[str], line: str) -> int:
    """Hydra's shell completion of keys and values; Hydra has no subcommands, so ours is removed first."""
    os.environ["COMP_LINE"] = re.sub(r"^\s*(\S+)\s+(run|compare)\b", r"\1", line)
    with suppress(RequestError):  # a half-typed line may not make sense yet
        return run_command(arguments)
    return 0
