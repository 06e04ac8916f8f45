"""What the commands share that Hydra does not parse: all except ``run``."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import NoReturn

from pagnn_bench.config.errors import RequestError


class Parser(ArgumentParser):
    """Reports errors in one sentence, like the rest of pagnn-bench."""

    def error(self, message: str) -> NoReturn:
        raise RequestError(f"{self.prog.removeprefix('pagnn-bench ')}: {message}.")


def add_results(parser: ArgumentParser) -> None:
    """The folder that a command reads; :func:`results_folder` turns it into a path."""
    parser.add_argument("--results", metavar="DIR", help="folder of the results (default: ./results)")


def results_folder(given: str | None) -> Path:
    """Where to read; a folder that was named must exist."""
    if given == "":  # a shell variable that is not set; as a path it would be the current folder
        raise RequestError("--results '': give the name of a folder.")
    if given is not None and not Path(given).is_dir():
        raise RequestError(f"--results {given}: there is no such folder.")
    return Path(given or "results")
