"""``pagnn_bench.run``: the command ``pagnn-bench run`` as a function."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from pagnn_bench.api.words import Key, configurations
from pagnn_bench.config.text import failure_reason
from pagnn_bench.engine import runner
from pagnn_bench.engine.outcome import Unfinished
from pagnn_bench.engine.plan import Request
from pagnn_bench.records.store import Store

if TYPE_CHECKING:
    import pandas as pd


def run(
    *words: str, progress: bool = True, config_dir: str | PathLike[str] | None = None, **keys: Key
) -> pd.DataFrame:
    """Train what is not recorded yet, and return all requested trials.

    Keys and records are those of ``pagnn-bench run`` (``pagnn-bench run --cfg job`` shows all keys), so what was
    trained from a shell is not trained here again, and vice versa::

        run(method="pagnn_n", data="cora", rate=0.5, seeds=5).test_acc.mean()
        run(method=["mf", "fp"], data="cora", rate=[0.1, 0.9], protocol__lr=0.01)
        run("method.args.heads=8", method="module", method__module="mine.MyGNN", data="custom", data__path="graph.npz")

    Args:
        *words: as in a shell: ``"protocol.lr=0.01"``; several values mean all combinations: ``"protocol.lr=0.01,0.1"``.
        progress: show progress on standard output and standard error.
        config_dir: a folder with your own methods or data (``--config-dir``).
        **keys: ``method``, ``data``, ``missing``, ``rate``, ``protocol``, ``masks``, ``seeds``, ``results_dir`` and so
            on; two underscores stand for the dot, ``method__hidden=32``. A list of methods, data, missing types, rates
            or protocols means all combinations; for other keys, a list is the value.

    Returns:
        One row per trial: ``method``, ``data``, ``missing``, ``rate``, ``protocol``, ``mask``, ``seed``, ``status``,
        ``test_acc``, ``val_acc`` (shares) and more. A training that diverged has the status ``failed`` and a reason.

    Raises:
        RequestError: the request was wrong; the message says how in one sentence.
        Unfinished: a training failed; the others are kept.
    """
    configs = configurations(words, keys, config_dir)
    shown: list[tuple[Sequence[Request], Store]] = []
    with silence(not progress):
        code = runner.run(configs, lambda requests, store: shown.append((requests, store)))
    if code == runner.STOPPED:
        raise KeyboardInterrupt
    return _frame(shown)


@contextlib.contextmanager
def silence(wanted: bool = True) -> Iterator[None]:
    """Discard all output, if ``wanted``."""
    if not wanted:
        yield
        return
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield


def _frame(shown: Sequence[tuple[Sequence[Request], Store]]) -> pd.DataFrame:
    from pagnn_bench.analysis.frames import trials_of

    found = []
    for requests, store in shown:
        for request in requests:
            if broken := store.failures(request.cell):
                raise Unfinished(
                    f"{request.cell}: {failure_reason(broken[0].error)} (traceback in {broken[0].path})"
                )
            recorded = store.load(request.cell)
            found.append((request.cell, [trial for key, trial in recorded.items() if key in request.trials]))
    return trials_of(found)
