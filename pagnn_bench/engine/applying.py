"""Train the seeds of one cell on one mask, and keep what records lack: the networks' predictions for every node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.text import failure_reason
from pagnn_bench.data import Graph
from pagnn_bench.data.raw import Names
from pagnn_bench.engine.backends.work import perform
from pagnn_bench.engine.device import pick_device
from pagnn_bench.engine.execute import Trained, check_cell, check_graph
from pagnn_bench.engine.outcome import Unfinished
from pagnn_bench.engine.own_units import Completed, Filled, in_own_units, names_of, why_not_completed
from pagnn_bench.engine.plan import Batch, Request, Settings, make_plan
from pagnn_bench.engine.prepare import MaskedCell
from pagnn_bench.engine.progress import Progress
from pagnn_bench.engine.runner import STOPPED, search, terminable
from pagnn_bench.engine.tuning import choose, is_tuned
from pagnn_bench.methods.portable import Portable
from pagnn_bench.records.store import Store


@dataclass(frozen=True)
class Network:
    """One trained network.

    Attributes:
        seed: of its trial.
        logits: float32 [n, C].
        hidden: the last hidden layer, float32 [n, h]; None if the network has none for every node.
        state: its weights: the state dict of the portable module, or by their names in the stack.
    """

    seed: int
    logits: np.ndarray
    hidden: np.ndarray | None
    state: dict[str, Tensor]


@dataclass
class Application:
    """The result of :func:`apply_cell`.

    Attributes:
        cell, mask: which.
        graph: with the split of the mask, and the classes as numbers.
        checksum: of the graph as loaded, as in the records.
        names: what the user calls nodes, attributes and classes.
        observed_share: share of the attributes that the method saw.
        records: of all trials, by seed, including failed ones.
        recorded: of the trials that were already in the results folder.
        probabilities: float32 [n, C], by seed, of the trials that succeeded.
        best: the networks with the highest validation accuracy, best first.
        portable: the module that the weights fit; None if there is no such module.
        completed: the attributes with missing ones filled in; None if the method fills in nothing.
        why_not: the reason for that.
    """

    cell: Cell
    mask: int
    graph: Graph
    checksum: str
    names: Names
    observed_share: float
    records: dict[int, dict[str, Any]]
    recorded: dict[int, dict[str, Any]]
    probabilities: dict[int, np.ndarray]
    best: list[Network]
    portable: Portable | None
    completed: Completed | None
    why_not: str


def apply_cell(config: dict[str, Any], best: int) -> Application:
    """Train (again, if only the records are left) and let the networks predict every node.

    Trials that are not recorded yet are recorded, as in a run.

    Args:
        config: a resolved configuration with a single mask.
        best: keep weights and hidden layers of this many networks.

    Raises:
        RequestError: the request was wrong.
        Unfinished: a training failed, or none succeeded.
    """
    settings = Settings.shared_by([config])
    _check_settings(settings)
    [mask] = _masks(Request.from_config(config))
    store = Store(settings.results_dir)
    if is_tuned(config):
        ending, broken = search([config], store, settings, lambda requests, store: None)
        if ending.code == STOPPED:
            raise KeyboardInterrupt
        if broken or not ending.trained:
            raise Unfinished(f"the search for the settings of {Request.from_config(config).cell} broke off")
        config = choose(config, store)
    request = Request.from_config(config)
    check_cell(request.cell)
    check_graph(request.cell, [mask])
    pick_device(settings.device)  # one that cannot be used is refused before anything is written
    store.prepare()
    before = store.load(request.cell)
    recorded = {seed: before[mask, seed].record for _, seed in request.trials if (mask, seed) in before}
    kept = _Kept(best)
    records = _train(request, store, settings, kept)
    if not kept.probabilities:
        reason = next(iter(records.values())).get("reason", "unknown")
        raise Unfinished(f"no training of {request.cell} ended well ({reason})")
    masked = kept.masked
    assert masked is not None
    why_not = why_not_completed(masked, kept.filled)
    completed = None if why_not or kept.filled is None else in_own_units(masked, kept.filled)
    return Application(
        cell=request.cell,
        mask=mask,
        graph=replace(masked.loaded, split=masked.complete.split),
        checksum=masked.loaded.checksum,
        names=names_of(request.cell),
        observed_share=1 - masked.graph.observed.missing_share,
        records=dict(sorted(records.items())),
        recorded={seed: record for seed, record in sorted(recorded.items()) if record["status"] == "ok"},
        probabilities=dict(sorted(kept.probabilities.items())),
        best=kept.best,
        portable=kept.portable,
        completed=completed,
        why_not=why_not,
    )


def _check_settings(settings: Settings) -> None:
    if settings.backend["name"] != "local" or settings.n_jobs not in ("auto", 1):
        key = (
            f"backend={settings.backend['name']}"
            if settings.n_jobs in ("auto", 1)
            else f"n_jobs={settings.n_jobs}"
        )
        raise RequestError(f"{key}: apply trains in this process; leave it out.")
    if settings.dry_run:
        raise RequestError("dry_run=true: apply has no plan to show; `pagnn-bench run` has.")


def _masks(request: Request) -> set[int]:
    masks = {mask for mask, _ in request.trials}
    if len(masks) > 1:
        raise RequestError(
            f"masks: apply works on one incomplete graph, not on {len(masks)}; give masks=1, or the index of a mask, "
            "such as masks=[2]."
        )
    return masks


def _train(request: Request, store: Store, settings: Settings, kept: _Kept) -> dict[int, dict[str, Any]]:
    """The records of all trials by seed; saves those that were not recorded yet."""
    todo = make_plan([request], store, settings)
    [mask], wanted = _masks(request), {seed for _, seed in request.trials}
    again = sorted(wanted.difference(*(batch.seeds for batch in todo)))
    stacks = [again[first : first + settings.stack] for first in range(0, len(again), settings.stack)]
    batches = [*todo, *(Batch(request.cell, mask, seeds, generation=0) for seeds in stacks)]
    records: dict[int, dict[str, Any]] = {}
    with Progress(len(wanted)) as progress, terminable():
        for batch in batches:
            progress.start(batch.cell, batch.mask, len(batch.seeds))
            [outcome] = perform((batch,), settings, progress, kept)
            if batch in todo:
                outcome.save(store)
            if outcome.error is not None:
                raise Unfinished(f"{request.cell}: {failure_reason(outcome.error)}")
            if outcome.note:
                progress.say(outcome.note)
            records |= {record["seed"]: record for record in outcome.records}
    return records


@dataclass
class _Kept:
    """Collects what is needed from every network, so that the networks themselves need not stay in memory.

    Attributes:
        size: how many of the best to keep.
        filled: X̂ [n, d]; the mean over seeds for a method that fills in separately for each.
    """

    size: int
    probabilities: dict[int, np.ndarray] = field(default_factory=dict)
    best: list[Network] = field(default_factory=list)
    masked: MaskedCell | None = None
    filled: Filled | None = None
    portable: Portable | None = None
    _ranks: dict[int, tuple[float, float, int]] = field(default_factory=dict)
    _fillings: int = 0

    def __call__(self, trained: Trained) -> None:
        network, seed, nodes = trained.network, trained.seed, len(trained.masked.graph.labels)
        with torch.no_grad():
            logits = network("test", None)[0].float()
            hidden = network.hidden("test")
        self.probabilities[seed] = torch.softmax(logits, dim=1).cpu().numpy()
        self.masked, self.portable = trained.masked, trained.prepared.portable
        self._fill(trained)
        # Ranked by validation accuracy, then validation loss; test nodes do not count.
        self._ranks[seed] = (-trained.record["val_acc"], trained.record["val_loss"], seed)
        if hidden is not None and hidden.shape[1] != nodes:  # it lacks nodes that no prediction depends on
            hidden = None
        weights = {name: p.detach()[0].cpu() for name, p in network.named_parameters() if p.numel()}
        own = Network(
            seed,
            logits.cpu().numpy(),
            None if hidden is None else hidden[0].float().cpu().numpy(),
            weights if self.portable is None else self.portable.state(weights),
        )
        others = [other for other in self.best if other.seed != seed]
        self.best = sorted([*others, own], key=lambda each: self._ranks[each.seed])[: self.size]

    def _fill(self, trained: Trained) -> None:
        filled = trained.prepared.filled
        if filled is None or not trained.masked.method.per_seed:
            self.filled = filled
            return
        self._fillings += 1
        values = filled if isinstance(filled, np.ndarray) else filled.toarray()
        mean = np.zeros_like(values, dtype=np.float64) if self.filled is None else self.filled
        self.filled = mean + (values - mean) / self._fillings


def differences(application: Application) -> dict[int, float]:
    """By seed, the test accuracy of the retrained network minus that of its record."""
    records = application.records
    return {
        seed: records[seed]["test_acc"] - record["test_acc"]
        for seed, record in application.recorded.items()
        if records[seed]["status"] == "ok"
    }


def accuracy(probabilities: np.ndarray, labels: np.ndarray, nodes: Sequence[int] | np.ndarray) -> float:
    """Share of these nodes whose likeliest class is their label."""
    return float((probabilities[nodes].argmax(axis=1) == labels[nodes]).mean())


def as_module(portable: Portable, state: Mapping[str, Tensor]) -> torch.nn.Module:
    """The ordinary torch module with these weights, in evaluation."""
    from pagnn_bench.config.loading import load_class

    kind = load_class("method.module", portable.module, torch.nn.Module, "torch.nn.Module")
    module: torch.nn.Module = kind(**portable.arguments)
    module.load_state_dict(dict(state))
    return module.eval()


def largest_difference(portable: Portable, network: Network) -> float:
    """The largest difference between the logits of the module and those of the network as trained."""
    given = {name: torch.from_numpy(values) for name, values in portable.inputs().items()}
    with torch.no_grad():
        logits = as_module(portable, network.state)(**given)
    return float(np.abs(logits.numpy() - network.logits).max())
