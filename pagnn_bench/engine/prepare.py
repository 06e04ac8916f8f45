"""From a cell and a mask to a prepared method and its networks, for trials and for ``bench`` alike."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from pagnn_bench.config.identity import Cell, canonical_json
from pagnn_bench.data import Graph, drawn_split, load_graph
from pagnn_bench.data.component import largest_component
from pagnn_bench.data.splits import development_split
from pagnn_bench.methods import Method, build_method
from pagnn_bench.methods.base import Context, Prepared, say_nothing
from pagnn_bench.methods.imputation import imputation_error
from pagnn_bench.methods.recovery import recovery
from pagnn_bench.missing import IncompleteGraph, hide, observe, splits_vary, standardise
from pagnn_bench.missing.label_share import mask_label_share
from pagnn_bench.missing.natural import scored
from pagnn_bench.nn.network import StackedNetwork
from pagnn_bench.training.clock import wait_for
from pagnn_bench.training.protocol import Protocol


@lru_cache(maxsize=4)
def load_once(config: str, component: str) -> Graph:
    """The graph of a ``data`` group, given as canonical JSON: the whole graph, or its largest component."""
    graph = load_graph(json.loads(config))
    return largest_component(graph) if component == "largest" else graph


def graph_of(cell: Cell) -> Graph:
    """The cell's graph, loaded once per process."""
    return load_once(canonical_json(cell.data), cell.protocol.get("component", "all"))


def has_own_splits(cell: Cell, graph: Graph) -> bool:
    """Whether each mask has its own split: by protocol, or because masks are not drawn and only splits can vary."""
    return cell.protocol.get("split") is not None or (splits_vary(cell.missing) and graph.split.drawn)


def graph_on(cell: Cell, mask: int) -> Graph:
    """The cell's graph with the split of a mask."""
    graph = graph_of(cell)
    if not has_own_splits(cell, graph):
        return graph
    seed, sizes = cell.split_seed(mask), cell.protocol.get("split")
    if sizes is not None:
        return replace(graph, split=development_split(graph.labels, seed=seed, **sizes))
    return replace(graph, split=drawn_split(cell.data, graph.labels, seed))


@dataclass(frozen=True)
class MaskedCell:
    """A cell on one of its masks.

    Attributes:
        cell: which.
        method: made from the cell.
        protocol: made from the cell.
        loaded: the graph as loaded; no method sees it.
        complete: the same with the split of this mask and in the scale of ``graph``, to compare with.
        graph: the graph without the hidden entries but with all labels, for the training loop, which computes scores.
        context: what the method gets besides its own view of the graph.
    """

    cell: Cell
    method: Method
    protocol: Protocol
    loaded: Graph
    complete: Graph
    graph: IncompleteGraph
    context: Context

    def everywhere(self) -> MaskedCell:
        """The same, but with every node in the part ``test``."""
        split = self.graph.split.everywhere(len(self.graph.labels))
        return replace(self, graph=replace(self.graph, split=split))

    def for_method(self) -> IncompleteGraph:
        """A copy of what the method may see: the only labels are those of training nodes."""
        return self.graph.for_method()


@dataclass(frozen=True)
class Preparation:
    """What a method has worked out for a mask.

    Attributes:
        prepared: what the method returned.
        facts: what to record: the shares of missing entries, in total and by nature; the share of the label entropy
            that the mask alone explains; whether the mask has its own split; the method's facts; the error of filled
            entries and how well they recover what is hidden, where the truth is known.
        seconds: the method's time, now or earlier: a cached imputation counts with the time it took.
    """

    prepared: Prepared
    facts: dict[str, Any]
    seconds: float


def hide_mask(
    cell: Cell,
    mask: int,
    device: torch.device,
    seed: int = 0,
    report: Callable[[str], None] = say_nothing,
    cache: Path | None = None,
    relearn: bool = False,
) -> MaskedCell:
    """Load the graph of a cell, draw a mask and remove what it hides.

    Args:
        cell, mask: which.
        device: where the method will work.
        seed: the trial's seed, for a method that prepares for every seed; others do not depend on it.
        report, cache, relearn: see :class:`pagnn_bench.methods.base.Context`.
    """
    method, protocol = build_method(cell.method), Protocol.from_config(cell.protocol)
    complete = graph_on(cell, mask)
    observed = observe(complete, cell.missing, cell.rate, cell.mask_seed(mask))
    if by := cell.data.get("standardise"):
        complete = standardise(complete, observed, by_all=by == "observed")
    graph = hide(complete, observed, protocol.feature_norm, oracle=method.oracle)
    own = cell.trial_seed("method", mask, seed) if method.per_seed else cell.method_seed(mask)
    context = Context(own, device, report, cache, relearn, narrow=protocol.precision == "bfloat16")
    return MaskedCell(cell, method, protocol, graph_of(cell), complete, graph, context)


def prepare(masked: MaskedCell) -> Preparation:
    """Let the method work on its own view of the graph; only the method's time counts."""
    method, own = masked.method, masked.for_method()  # copied before the clock starts
    start = time.perf_counter()
    prepared = method.prepare(own, masked.context)
    wait_for(masked.context.device)
    seconds = time.perf_counter() - start + prepared.facts.get("cached_seconds", 0.0)
    complete, observed = masked.complete, masked.graph.observed
    facts = {
        "missing_share": observed.missing_share,
        "mask_label_share": mask_label_share(observed, complete.labels),
        **prepared.facts,
    }
    if complete.known is not None:
        facts["natural_share"] = complete.natural_share
    if has_own_splits(masked.cell, masked.loaded):
        facts["own_split"] = True
    if prepared.filled is not None and masked.protocol.feature_norm == "none" and not method.oracle:
        judged = prepared.filled, complete.features, scored(complete, observed)
        facts |= imputation_error(*judged) | recovery(*judged)
    return Preparation(prepared, facts, seconds)


def make_network(prepared: Prepared, weight_seeds: Sequence[int], protocol: Protocol) -> StackedNetwork:
    """The stacked network of these seeds, in the precision of the protocol."""
    network = prepared.network(weight_seeds, protocol.init_gain)
    if protocol.precision == "bfloat16":
        network.to_bfloat16()
    return network
