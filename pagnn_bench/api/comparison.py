"""``pagnn_bench.compare``: every method that suits a graph, trained by the engine of ``run``, ranked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from pagnn_bench.analysis.ranking import Comparison, Contender, remarks_of
from pagnn_bench.api.closing import failure_lines, records_of, show_results
from pagnn_bench.api.entrants import Entrants, enter
from pagnn_bench.api.running import silence
from pagnn_bench.api.words import Key, checked_folder, hydra_as_it_was, words_of
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import TRIES
from pagnn_bench.config.sentences import in_one_sentence
from pagnn_bench.engine.plan import Request, Settings
from pagnn_bench.engine.runner import STOPPED, run
from pagnn_bench.records.store import Store


class Ending(NamedTuple):
    """How a comparison ended.

    Attributes:
        code: as of ``run``: 0; 1 if something failed; 130 if it was interrupted.
        comparison: None if nothing can be ranked: after a dry run or an interruption, or if the trials were submitted
            to a batch system.
        results_dir, records: the folders of all results and of these cells' records.
    """

    code: int
    comparison: Comparison | None
    results_dir: Path
    records: Path


def compare(
    *words: str, progress: bool = True, config_dir: str | PathLike[str] | None = None, **keys: Key
) -> Comparison:
    """Train every method that suits a graph, except for recorded trials, and rank them.

    The keys are those of ``pagnn-bench compare``, the trials those of :func:`pagnn_bench.run`::

        comparison = compare(data="custom", data__path="mygraph.npz")
        comparison.frame()  # a row per method, best first
        comparison.sentence  # which method to use, and how certain that is
        compare(method=["mf", "fp", "pagnn_n"], data="cora", rate=0.9, tune=True)

    Args:
        *words: as in a shell: ``"protocol.lr=0.01"``.
        progress: show progress.
        config_dir: a folder with your own methods or data (``--config-dir``).
        **keys: as in :func:`pagnn_bench.run`, for one graph; ``method`` may be a list. ``tune=True`` first chooses the
            settings of each method on validation data.

    Raises:
        RequestError: the request was wrong; the message says how in one sentence.
    """
    with hydra_as_it_was(), silence(not progress):
        ending = compare_methods(words_of(words, keys), checked_folder(config_dir))
    if ending.code == STOPPED:
        raise KeyboardInterrupt
    if ending.comparison is None:
        raise RequestError(
            "Nothing was trained here, so nothing can be ranked: leave out dry_run and backend."
        )
    return ending.comparison


def compare_methods(words: Sequence[str], folder: str | None = None) -> Ending:
    """The command ``compare``, from its words to the ranking.

    The trials are those of ``run`` with the same words, so each command continues where the other stopped. Progress
    goes to stderr, the plan of a dry run to stdout.

    Args:
        words: ``KEY=VALUE`` as for ``run``, for one graph. ``method=a,b,c`` replaces all methods that suit it;
            ``tune=true`` first chooses the settings of each on validation data.
        folder: with the user's own methods or data.

    Raises:
        RequestError: the request is wrong.
    """
    with in_one_sentence():
        entrants = enter(words, folder)
        trained = _Trained()
        dry = entrants.configs[0].get("dry_run") is True
        with nullcontext() if dry else redirect_stdout(sys.stderr):
            for text in remarks_of(entrants.notes, entrants.left_out):
                print(text)
            code = run(entrants.configs, trained)
    store = trained.store or Store(Settings.shared_by(entrants.configs).results_dir)
    records = records_of(list(trained.requests.values()), store)
    return Ending(code, trained.compared(entrants), store.results_dir, records)


class _Trained:
    """Receives the cells with their trials at the end of the engine's run."""

    def __init__(self) -> None:
        self.store: Store | None = None
        self.requests: dict[str, Request] = {}  # by method

    def __call__(self, requests: Sequence[Request], store: Store) -> None:
        if requests[0].cell.protocol["name"] == TRIES:  # a search with failures
            show_results(requests, store)
            return
        self.store, self.requests = store, {request.cell.method["name"]: request for request in requests}

    def compared(self, entrants: Entrants) -> Comparison | None:
        """All entrants, including those that were not trained because their search failed."""
        if self.store is None:
            return None
        contenders = [self._contender(config, self.store) for config in entrants.configs]
        cell = next(iter(self.requests.values())).cell
        notes = [_settings(entrants.configs, contenders), *entrants.notes]
        return Comparison(cell, tuple(contenders), entrants.left_out, tuple(notes))

    def _contender(self, config: dict[str, Any], store: Store) -> Contender:
        name = config["method"]["name"]
        label = str(config["method"].get("label") or name)
        request = self.requests.get(name)
        if request is None:
            wanted = len(Request.from_config(config).trials)
            return Contender(name, label, (), wanted, "the search for its settings failed")
        trials = [trial for key, trial in store.load(request.cell).items() if key in request.trials]
        reasons = [line.strip().removeprefix("failed: ") for line in failure_lines(request, store)]
        return Contender(name, label, tuple(trials), len(request.trials), "; ".join(reasons))


def _settings(configs: Sequence[dict[str, Any]], contenders: Sequence[Contender]) -> str:
    """A sentence on how the methods got their settings."""
    tunings = [config["protocol"].get("tuning") for config in configs]
    if all(tunings):
        budget, mask = tunings[0]["budget"], tunings[0]["mask"]
        text = f"Settings: of {budget} tried for each method, the best by the validation nodes of mask {mask}"
        varying = any(contender.summary.unit == "split" for contender in contenders)
        return f"{text}{', some of which are test nodes of the splits here' if varying else ''}."
    if configs[0]["protocol"]["name"] == "paper":
        return (
            "Settings: as published by each method's authors, not chosen for this graph; tune=true does that."
        )
    return f"Settings: protocol {configs[0]['protocol']['name']}."
