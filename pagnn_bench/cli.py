"""The front door: ``pagnn-bench COMMAND``. Every command imports what it needs, so that help answers at once."""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, cast

from pagnn_bench import __version__
from pagnn_bench.errors import RequestError

HELP = """\
pagnn-bench: train PaGNN and its rivals on graphs with missing node attributes, reproducibly.

  pagnn-bench run [-m] [KEY=VALUE ...]      train a cell, or with -m all combinations; keeps what is done
  pagnn-bench status [--watch]              how far the sweeps of a results folder have come
  pagnn-bench collect                       write all results into a few tables, fit to be committed
  pagnn-bench list [GROUP]                  what there is: data, missing, method, protocol, experiment
  pagnn-bench data list|fetch|verify [NAME] the datasets: statistics, download, checksums

  pagnn-bench run method=pagnn_n data=cora missing=type1
  pagnn-bench run -m method=pagnn_m,pagnn_n data=cora rate=0.1,0.5,0.9 missing=type1,type2
  pagnn-bench run experiment=smoke          no data needed, done in seconds

  pagnn-bench run --help                    all keys;  --version  the version
"""


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(HELP, end="")
        return 0
    if arguments[0] == "--version":
        print(f"pagnn-bench {__version__}")
        return 0
    if arguments[0] in ("-sc", "--shell-completion"):
        return _complete(arguments)
    name, rest = arguments[0], arguments[1:]
    try:
        if name not in COMMANDS:
            raise RequestError(f"{name}: no such command; choose one of {', '.join(COMMANDS)}.")
        with _warnings_on_stderr():
            return COMMANDS[name](rest)
    except RequestError as error:
        print(f"pagnn-bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130


@contextmanager
def _warnings_on_stderr() -> Iterator[None]:
    """Show what this package warns of; the root logger stays as it is, since Hydra logs its reports there."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("warning: %(message)s"))
    logger = logging.getLogger("pagnn_bench")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def run_command(arguments: list[str]) -> int:
    """``run``: Hydra takes the arguments as its own, so multirun, --cfg, --help and completion are Hydra's."""
    import hydra
    from hydra.errors import HydraException
    from omegaconf import DictConfig, OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from pagnn_bench.runner import run

    composed: list[DictConfig] = []

    # Hydra only composes, once per combination of a multirun: all of them together are one plan, and what goes
    # wrong in it is told by us. With --help, --cfg and the like nothing is composed to be run.
    @hydra.main(config_path="pkg://pagnn_bench.conf", config_name="config", version_base="1.3")
    def job(config: DictConfig) -> None:
        composed.append(config)

    # Hydra's parser takes overrides in one piece only; moved to the end, they may stand on both sides of a flag.
    arguments = sorted(
        arguments, key=lambda word: not word.startswith("-") and ("=" in word or word.startswith("~"))
    )
    _check_flags(arguments)
    try:
        with _as_hydra_expects(arguments):
            job()
        configs = [OmegaConf.to_container(config, resolve=True) for config in composed]
        return run(cast(list[dict[str, Any]], configs)) if configs else 0
    except (HydraException, OmegaConfBaseException) as error:
        raise RequestError(_one_sentence(error)) from error
    except SystemExit as exit_:  # the end of --help
        return exit_.code if isinstance(exit_.code, int) else 1


@contextmanager
def _as_hydra_expects(arguments: list[str]) -> Iterator[None]:
    """A command line without the subcommand, and errors as exceptions: Hydra would print them and exit with 1."""
    saved_arguments, saved_variable = sys.argv, os.environ.get("HYDRA_FULL_ERROR")
    with tempfile.TemporaryDirectory() as scratch:  # for the copy of its configuration that a multirun writes
        sys.argv = ["pagnn-bench", *arguments, f"hydra.sweep.dir='{scratch}'"]
        os.environ["HYDRA_FULL_ERROR"] = "1"
        try:
            yield
        finally:
            sys.argv = saved_arguments
            del os.environ["HYDRA_FULL_ERROR"]
            if saved_variable is not None:
                os.environ["HYDRA_FULL_ERROR"] = saved_variable


def _check_flags(arguments: list[str]) -> None:
    """Refuse in one sentence the flags that Hydra would answer with its whole usage or with a traceback."""
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


def _one_sentence(error: Exception) -> str:
    """What was wrong with a key or a value, without Hydra's advice to programmers."""
    from hydra.errors import MissingConfigException, OverrideParseException

    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options:
        group, _, name = error.missing_cfg_file.rpartition("/")
        return f"{group}={name}: choose one of {', '.join(error.options)}."
    if isinstance(error, OverrideParseException):
        return f"{error.override}: cannot be read as KEY=VALUE."
    text = str(error)
    if unknown := re.match(r"Could not override .*use \+(.*)", text, re.DOTALL):
        return f"{unknown[1]}: there is no such key; `pagnn-bench run --cfg job` shows all keys."
    if several := re.match(r"Ambiguous value for argument '(.*?)'\n", text):
        key, _, values = several[1].partition("=")
        return f"{several[1]}: add -m to run each of these, or write a list as {key}=[{values}]."
    if unresolved := re.match(r"(Interpolation .*?)\s+full_key: (\S+)", text, re.DOTALL):
        return f"{unresolved[2]}: {unresolved[1]}."
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


def list_command(arguments: list[str]) -> int:
    """``list``: one line per choice, read from the configuration files."""
    from pagnn_bench.catalogue import GROUPS, choices

    if len(arguments) > 1 or any(group not in GROUPS for group in arguments):
        raise RequestError(f"list {' '.join(arguments)}: name one group or none: {', '.join(GROUPS)}.")
    for group in arguments or GROUPS:
        print(f"{group}=")
        found = choices(group)
        width = max(map(len, found), default=0)
        for name, description in found.items():
            print(f"  {name:<{width}}  {description}")
    return 0


def data_command(arguments: list[str]) -> int:
    """``data``: statistics, download and checksums of the datasets."""
    from pagnn_bench.data.command import data_command

    return data_command(arguments)


def status_command(arguments: list[str]) -> int:
    """``status``: done, failed and still to do, per cell."""
    from pagnn_bench.status import status_command

    return status_command(arguments)


def collect_command(arguments: list[str]) -> int:
    """``collect``: results as a few sorted tables."""
    from pagnn_bench.collected import collect_command

    return collect_command(arguments)


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "run": run_command,
    "status": status_command,
    "collect": collect_command,
    "list": list_command,
    "data": data_command,
}


def _complete(arguments: list[str]) -> int:
    """Shell completion: ours for the subcommands, Hydra's for the keys and values of ``run``."""
    line = os.environ.get("COMP_LINE", "")
    words = line.split()
    if "COMP_LINE" in os.environ and (len(words) < 2 or (len(words) == 2 and not line.endswith(" "))):
        print(*COMMANDS)
        return 0
    if words[1:2] == ["list"]:
        from pagnn_bench.catalogue import GROUPS

        print(*GROUPS)
        return 0
    if words and words[1] != "run":
        return 0
    os.environ["COMP_LINE"] = re.sub(r"^\s*(\S+)\s+run\b", r"\1", line)  # Hydra knows no subcommands
    with suppress(RequestError):  # what is being typed may not make sense yet
        return run_command(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
