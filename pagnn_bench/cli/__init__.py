"""The front door: ``pagnn-bench COMMAND``. A command is imported when it is called, so that help answers at once."""

from __future__ import annotations

import errno
import importlib
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pagnn_bench import __version__
from pagnn_bench.config.errors import RequestError

HELP = """\
pagnn-bench: train PaGNN and its rivals on graphs with missing node attributes, reproducibly.

  pagnn-bench run [-m] [KEY=VALUE ...]      train a cell, or with -m all combinations; resumes
  pagnn-bench compare [KEY=VALUE ...]       every method that suits your graph, ranked: which one to use
  pagnn-bench apply KEY=VALUE ... -o DIR    write predictions, completed attributes and weights
  pagnn-bench status [--watch]              progress of the sweeps in a results folder
  pagnn-bench tables [--compare paper]      the paper's tables from your records; LaTeX, CSV, ...
  pagnn-bench report [-o DIR] [--open]      one page: tables, figures, statistics, the paper's claims
  pagnn-bench collect                       write all results into a few tables for version control
  pagnn-bench list [GROUP]                  available choices: data, method, protocol, experiment, ...
  pagnn-bench data list|fetch|verify [NAME] the datasets: statistics, download, checksums
  pagnn-bench bench [--growth]              speed and memory, compared with a plain torch_geometric loop
  pagnn-bench check-device [--quick]        whether a GPU computes what the CPU computes: PASS or FAIL

  pagnn-bench run method=pagnn_n data=cora missing=type1
  pagnn-bench run -m method=pagnn_m,pagnn_n data=cora rate=0.1,0.5,0.9 missing=type1,type2
  pagnn-bench compare data=custom data.path=mygraph.npz missing=natural
  pagnn-bench run experiment=smoke          needs no data, takes seconds

  pagnn-bench run --help                    all keys;  --version  the version
"""


# Each function takes the remaining arguments and returns the exit code.
COMMANDS = {
    "run": "pagnn_bench.cli.run:run_command",
    "compare": "pagnn_bench.cli.compare:compare_command",
    "apply": "pagnn_bench.cli.apply:apply_command",
    "status": "pagnn_bench.cli.status:status_command",
    "tables": "pagnn_bench.cli.tables:tables_command",
    "report": "pagnn_bench.cli.report:report_command",
    "collect": "pagnn_bench.cli.collect:collect_command",
    "list": "pagnn_bench.cli.list:list_command",
    "data": "pagnn_bench.cli.data:data_command",
    "bench": "pagnn_bench.cli.bench:bench_command",
    "check-device": "pagnn_bench.cli.check_device:check_device_command",
}


def main(argv: list[str] | None = None) -> int:
    """Run one command and return the exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    # Threads that wait for each other should spin briefly, then sleep. By default, OpenMP spins so long that other work
    # on the machine made an epoch forty times as long; sleeping at once (PASSIVE) doubled it on a quiet machine. Read
    # when torch is loaded; the user's own policy wins.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "20000")
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
            code = _command(name)(rest)
        sys.stdout.flush()
        return code
    except RequestError as error:
        print(f"pagnn-bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130
    except OSError as error:
        if error.errno == errno.ENOSPC:
            print(f"pagnn-bench: {error.filename or 'the output'}: {error.strerror}.", file=sys.stderr)
        elif error.errno != errno.EPIPE:  # EPIPE: the reader of our output, such as `head`, has closed it
            raise
        # So that Python can close stdout quietly at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _command(name: str) -> Callable[[list[str]], int]:
    module, _, function = COMMANDS[name].partition(":")
    return getattr(importlib.import_module(module), function)


@contextmanager
def _warnings_on_stderr() -> Iterator[None]:
    """Show this package's warnings; leave the root logger alone, since Hydra logs its reports there."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("warning: %(message)s"))
    logger = logging.getLogger("pagnn_bench")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _complete(arguments: list[str]) -> int:
    """Shell completion: ours for the subcommands, Hydra's for keys and values."""
    # A warning would end up in the line being typed.
    logging.getLogger("pagnn_bench").addHandler(logging.NullHandler())
    line = os.environ.get("COMP_LINE", "")
    words = line.split()
    if "COMP_LINE" in os.environ and (len(words) < 2 or (len(words) == 2 and not line.endswith(" "))):
        print(*COMMANDS)
        return 0
    if words[1:2] == ["list"]:
        from pagnn_bench.config.catalogue import GROUPS

        print(*GROUPS)
        return 0
    if words and words[1] not in ("run", "compare"):
        return 0
    from pagnn_bench.cli.run import complete_run

    return complete_run(arguments, line)
