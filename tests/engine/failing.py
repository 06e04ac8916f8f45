"""Methods that fail as on a GPU; a YAML file of a test's own names them, so that they fail in worker processes, too."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from pagnn_bench.baselines.zero import Zero
from pagnn_bench.methods.base import Context, Prepared
from pagnn_bench.missing import IncompleteGraph
from pagnn_bench.nn.network import StackedNetwork

POISON = Path("poison")  # where it is, the next batch loses the GPU
TRAINED = Path("trained")  # process ids of all batches that were begun, in order
FITS = 3


class Poisoned(Zero):
    """Loses the GPU once."""

    def prepare(self, graph: IncompleteGraph, context: Context) -> Prepared:
        try:
            os.remove(POISON)
        except FileNotFoundError:
            fate = "fine"
        else:
            fate = "lost"
        with TRAINED.open("a") as file:
            file.write(f"{os.getpid()} {fate}\n")
        if fate == "lost":
            raise torch.AcceleratorError("CUDA error: device-side assert triggered")
        return super().prepare(graph, context)


class Hungry(Zero):
    """Needs too much memory for more than three seeds at once."""

    def prepare(self, graph: IncompleteGraph, context: Context) -> Prepared:
        prepared = super().prepare(graph, context)

        def network(seeds: Sequence[int], gain: float) -> StackedNetwork:
            if len(seeds) > FITS:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
            return prepared.network(seeds, gain)

        return replace(prepared, network=network)


def add_methods(folder: Path) -> list[str]:
    """Write the YAML files of these methods; the words that make them known to a command."""
    (folder / "method").mkdir()
    for kind in (Poisoned, Hungry):
        name = kind.__name__.lower()
        (folder / f"method/{name}.yaml").write_text(
            f"defaults: [base/two_layer@_here_, _self_]\nname: {name}\n_target_: {__name__}.{kind.__name__}\n"
        )
    return ["--config-dir", str(folder)]
