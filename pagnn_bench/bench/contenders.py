"""Who is measured: our network with some number of stacked seeds, and the plain loop, on the same graph and mask."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import nn

from pagnn_bench.baselines.gcnmf import GCNmf, fit_mixture
from pagnn_bench.baselines.pagcn import PaGCN
from pagnn_bench.bench.reference import train_plain
from pagnn_bench.bench.reference_gcnmf import FullTensorGCNmf
from pagnn_bench.bench.reference_models import PlainGCN, PlainPaGNN
from pagnn_bench.bench.speed import CSR, PLAIN
from pagnn_bench.config.identity import Cell
from pagnn_bench.engine.execute import graph_of
from pagnn_bench.methods import Method, build_method
from pagnn_bench.methods.base import Context, Prepared
from pagnn_bench.methods.imputation import ImputationMethod
from pagnn_bench.methods.pagnn import PaGNN
from pagnn_bench.missing import IncompleteGraph, draw_observed, hide
from pagnn_bench.training.loop import Protocol, train

MASK = 0  # all contenders of a place see the first mask
# A contender trains for about this long in a round: long enough for the clock, short enough for many rounds.
SLICE_SECONDS = 1.0
LEAST_EPOCHS = 3

Material: TypeAlias = "dict[str, np.ndarray]"  # what the reference takes over from a preparation


@dataclass(frozen=True)
class Sample:
    """Milliseconds of one epoch of one seed: train step, and evaluation."""

    train_ms: float
    eval_ms: float


# Trains for a number of epochs, however well it goes, and tells how long one of them took.
Contender: TypeAlias = "Callable[[int], Sample]"


@dataclass(frozen=True)
class Ground:
    """A cell whose graph and mask are there."""

    cell: Cell
    method: Method
    graph: IncompleteGraph
    context: Context

    @property
    def protocol(self) -> Protocol:
        return Protocol.from_config(self.cell.protocol)


def make_ground(cell: Cell, device: torch.device, cache: Path | None) -> Ground:
    """Load the graph, draw the mask, hide what is missing: as a batch of trials does it."""
    method, graph = build_method(cell.method), graph_of(cell)
    shape = (graph.num_nodes, graph.num_features)
    observed = draw_observed(cell.missing, cell.rate, shape, cell.mask_seed(MASK))
    protocol = Protocol.from_config(cell.protocol)
    incomplete = hide(graph, observed, protocol.feature_norm, oracle=method.oracle)
    return Ground(cell, method, incomplete, Context(cell.method_seed(MASK), device, cache=cache))


def prepare(ground: Ground) -> tuple[Prepared, float]:
    """What the method works out for the mask, and its seconds; those of a cached imputation are counted, too."""
    start = time.perf_counter()
    prepared = ground.method.prepare(ground.graph, ground.context)
    return prepared, time.perf_counter() - start + prepared.facts.get("cached_seconds", 0.0)


def _unstopped(protocol: Protocol, epochs: int) -> Protocol:
    """The same training for exactly this many epochs: no seed runs out of patience."""
    return replace(protocol, max_epochs=epochs, patience=epochs + 1)


def ours(ground: Ground, prepared: Prepared, seeds: int) -> Contender:
    """Our training loop on a stack of seeds."""
    cell, device = ground.cell, ground.context.device
    weights, dropout = (
        [cell.trial_seed(purpose, MASK, seed) for seed in range(seeds)] for purpose in ("weights", "dropout")
    )

    def run(epochs: int) -> Sample:
        protocol = _unstopped(ground.protocol, epochs)
        network = prepared.network(weights, protocol.init_gain)
        result = train(network, ground.graph, protocol, dropout, device)
        unit = 1000.0 / result.seed_epochs
        return Sample(unit * result.train_seconds, unit * result.eval_seconds)

    return run


def choose_epochs(contender: Contender, seeds: int, most: int) -> int:
    """Warm a contender up; how many of its epochs fill a slice of time, at the most ``most``."""
    contender(1)  # builds what stays from one training to the next
    sample = contender(min(2, most))
    seconds = seeds * (sample.train_ms + sample.eval_ms) / 1000
    return max(min(LEAST_EPOCHS, most), min(most, int(SLICE_SECONDS / seconds)))


def family_of(method: Method) -> str:
    """Which reference and which targets a method has."""
    kinds = {"gcnmf": GCNmf, "imputation": ImputationMethod, "pagnn": PaGNN, "pagcn": PaGCN}
    return next((name for name, kind in kinds.items() if isinstance(method, kind)), "other")


def reference_forms(method: Method) -> tuple[str, ...]:
    """The forms in which there is a reference for this method."""
    return {"other": (), "gcnmf": (PLAIN,)}.get(family_of(method), (PLAIN, CSR))


def reference_material(ground: Ground, prepared: Prepared) -> Material:
    """What the reference must be given: the filled features X̂ [n, d], or the initial mixture of GCNmf."""
    method, graph = ground.method, ground.graph
    if isinstance(method, GCNmf):
        mixture = fit_mixture(graph, method.components, ground.context.seed)
        return {key: value.numpy() for key, value in mixture._asdict().items()}
    if isinstance(method, ImputationMethod):
        filled = prepared.filled if prepared.filled is not None else method.impute(graph, ground.context)
        return {"filled": filled if isinstance(filled, np.ndarray) else filled.toarray()}
    return {}


def reference(ground: Ground, material: Mapping[str, Any], form: str) -> Contender:
    """The plain loop, for one seed."""
    cell, device = ground.cell, ground.context.device
    build = reference_model(ground, material, form)

    def run(epochs: int) -> Sample:
        protocol = _unstopped(ground.protocol, epochs)
        result = train_plain(build, ground.graph, protocol, cell.trial_seed("weights", MASK, 0), device)
        return Sample(1000 * result.train_seconds / epochs, 1000 * result.eval_seconds / epochs)

    return run


def reference_model(ground: Ground, material: Mapping[str, Any], form: str) -> Callable[[], nn.Module]:
    """Makes the plain network of a method, with its hidden size and dropout rate."""
    method, graph, device = ground.method, ground.graph, ground.context.device
    if isinstance(method, GCNmf):
        mixture = (material["log_pi"], material["mu"], material["log_sigma2"])
        return lambda: FullTensorGCNmf(graph, mixture, method.hidden, method.dropout, device)
    if isinstance(method, ImputationMethod):
        filled = torch.from_numpy(np.ascontiguousarray(material["filled"], dtype=np.float32)).to(device)
        sizes = (method.hidden, graph.num_classes)
        return lambda: PlainGCN(filled, graph.adjacency, sizes, method.dropout, form)
    if isinstance(method, PaGNN | PaGCN):
        norm = method.norm if isinstance(method, PaGNN) else "pagcn"
        return lambda: PlainPaGNN(graph, norm, method.hidden, method.dropout, form, device)
    raise ValueError(f"no reference for {type(method).__name__}")
