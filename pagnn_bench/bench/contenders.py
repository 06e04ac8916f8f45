"""What is measured: our network with some number of stacked seeds, and the plain loop, on the same graph and mask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
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
from pagnn_bench.engine.prepare import MaskedCell, make_network
from pagnn_bench.methods import Method
from pagnn_bench.methods.base import Prepared
from pagnn_bench.methods.imputation import ImputationMethod
from pagnn_bench.methods.pagnn import PaGNN
from pagnn_bench.training.loop import train
from pagnn_bench.training.protocol import Protocol

MASK = 0  # all contenders of a place see the first mask
# A contender trains for about this long in a round: long enough for the clock, short enough for many rounds.
SLICE_SECONDS = 1.0
LEAST_EPOCHS = 3

ReferenceInputs: TypeAlias = "dict[str, np.ndarray]"  # what the reference takes from a preparation


@dataclass(frozen=True)
class Sample:
    """Milliseconds of one epoch of one seed: train step and evaluation."""

    train_ms: float
    eval_ms: float


# Trains for exactly this number of epochs and returns the time of one of them.
Contender: TypeAlias = "Callable[[int], Sample]"


def unstopped(protocol: Protocol, epochs: int) -> Protocol:
    """The same training for exactly this many epochs: no seed runs out of patience."""
    return replace(protocol, max_epochs=epochs, patience=epochs + 1)


def our_contender(masked: MaskedCell, prepared: Prepared, seeds: int) -> Contender:
    """Our training loop on a stack of seeds."""
    cell, device = masked.cell, masked.context.device
    weights, dropout = (
        [cell.trial_seed(purpose, MASK, seed) for seed in range(seeds)] for purpose in ("weights", "dropout")
    )

    def run(epochs: int) -> Sample:
        protocol = unstopped(masked.protocol, epochs)
        network = make_network(prepared, weights, protocol)
        result = train(network, masked.graph, protocol, dropout, device)
        unit = 1000.0 / result.seed_epochs
        return Sample(unit * result.train_seconds, unit * result.eval_seconds)

    return run


def choose_epochs(contender: Contender, seeds: int, most: int) -> int:
    """Warm up a contender; returns how many of its epochs fill a slice of time, at most ``most``."""
    contender(1)  # builds what lasts from one training to the next
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


def reference_inputs(masked: MaskedCell, prepared: Prepared) -> ReferenceInputs:
    """What the reference needs: the filled features X̂ [n, d], or the initial mixture of GCNmf."""
    method, graph = masked.method, masked.for_method()
    if isinstance(method, GCNmf):
        mixture = fit_mixture(graph, method.components, masked.context.seed)
        return {key: value.numpy() for key, value in mixture._asdict().items()}
    if isinstance(method, ImputationMethod):
        filled = prepared.filled if prepared.filled is not None else method.impute(graph, masked.context)
        return {"filled": filled if isinstance(filled, np.ndarray) else filled.toarray()}
    return {}


def reference_contender(masked: MaskedCell, inputs: Mapping[str, Any], form: str) -> Contender:
    """The plain loop, for one seed."""
    cell, device = masked.cell, masked.context.device
    build = reference_model(masked, inputs, form)

    def run(epochs: int) -> Sample:
        protocol = unstopped(masked.protocol, epochs)
        result = train_plain(build, masked.graph, protocol, cell.trial_seed("weights", MASK, 0), device)
        return Sample(1000 * result.train_seconds / epochs, 1000 * result.eval_seconds / epochs)

    return run


def reference_model(masked: MaskedCell, inputs: Mapping[str, Any], form: str) -> Callable[[], nn.Module]:
    """Makes the plain network of a method, with its hidden size and dropout rate."""
    method, graph, device = masked.method, masked.graph, masked.context.device
    if isinstance(method, GCNmf):
        mixture = (inputs["log_pi"], inputs["mu"], inputs["log_sigma2"])
        return lambda: FullTensorGCNmf(graph, mixture, method.hidden, method.dropout, device)
    if isinstance(method, ImputationMethod):
        filled = torch.from_numpy(np.ascontiguousarray(inputs["filled"], dtype=np.float32)).to(device)
        sizes = (method.hidden, graph.num_classes)
        return lambda: PlainGCN(filled, graph.adjacency, sizes, method.dropout, form)
    if isinstance(method, PaGNN | PaGCN):
        norm = method.norm if isinstance(method, PaGNN) else "pagcn"
        return lambda: PlainPaGNN(graph, norm, method.hidden, method.dropout, form, device)
    raise ValueError(f"no reference for {type(method).__name__}")
