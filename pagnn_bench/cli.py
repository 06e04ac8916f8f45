"""The front door: ``pagnn-bench COMMAND``. Every command imports what it needs, so that help answers at once."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable

from pagnn_bench import __version__
from pagnn_bench.errors import RequestError

HELP = """\
pagnn-bench: train PaGNN and its rivals on graphs with missing node attributes, reproducibly.

  pagnn-bench run [-m] [KEY=VALUE ...]      train a cell, or with -m all combinations; keeps what is done
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
    logging.basicConfig(level=logging.WARNING, format="warning: %(message)s")
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
        return COMMANDS[name](rest)
    except RequestError as error:
        print(f"pagnn-bench: {error}", file=sys.stderr)
        return 2


def run_command(arguments: list[str]) -> int:
    """``run``: Hydra takes the arguments as its own, so multirun, --cfg, --help and completion are Hydra's."""
    import hydra
    from hydra.errors import HydraException
    from omegaconf import DictConfig
    from omegaconf.errors import OmegaConfBaseException

    from pagnn_bench.launcher import plain, register
    from pagnn_bench.runner import run

    register()

    @hydra.main(config_path="pkg://pagnn_bench.conf", config_name="config", version_base="1.3")
    def job(config: DictConfig) -> None:
        try:
            code = run([plain(config)])
        except RequestError as error:  # not through Hydra, which would print a report of its own
            print(f"pagnn-bench: {error}", file=sys.stderr)
            code = 2
        if code:
            raise SystemExit(code)

    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors come to us as exceptions; Hydra would exit with code 1
    saved, sys.argv = sys.argv, ["pagnn-bench", *arguments]
    try:
        job()
    except (HydraException, OmegaConfBaseException) as error:
        raise RequestError(_one_sentence(error)) from error
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else 1
    finally:
        sys.argv = saved
    return 0


def _one_sentence(error: BaseException) -> str:
    """Hydra's report of a wrong key or value, on one line and without its advice about Hydra."""
    text = re.sub(r"Set hydra\.searchpath.*|Config search path:.*", "", str(error), flags=re.DOTALL)
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


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "run": run_command,
    "list": list_command,
    "data": data_command,
}


def _complete(arguments: list[str]) -> int:
    """Hydra's shell completion, which knows no subcommands: take ``run`` out of the line being completed."""
    line = os.environ.get("COMP_LINE", "")
    shortened = re.sub(r"^(\S+)\s+run\b", r"\1", line)
    if "COMP_POINT" in os.environ:
        os.environ["COMP_POINT"] = str(int(os.environ["COMP_POINT"]) - len(line) + len(shortened))
    os.environ["COMP_LINE"] = shortened
    return run_command(arguments)


if __name__ == "__main__":
    sys.exit(main())
