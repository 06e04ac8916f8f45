"""Measure what the validation labels in the input of FSD-CAP's public code are worth.

    PAGNN_DATA=... python scripts/audit_fsdcap.py --data cora,citeseer [--masks 10] [--protocol extreme] [KEY=VALUE ...]

The second stage of FSD-CAP gives every node a label ŷ, which enters the class means, the weights of the nodes in
them, and the choice of the mean that a node is pulled towards. The public code (ssjcode/FSD-CAP, fsdcap.py, pre_GNN)
starts with the labels of all nodes and replaces those of test nodes by predictions, so validation nodes have their
true labels. This script compares four inputs, on the same splits, masks and first diffusion, each with the same
initial weights of the network that follows:

    public     ŷ true at training and validation nodes, predicted at test nodes
    clean      ŷ true at training nodes, predicted elsewhere
    method     like clean, with a first classifier that never sees a validation label: method=fsdcap
    diffusion  the first stage alone

Predictions and confidences of public and clean come from the same classifier, stopped by validation accuracy as in
the public code, at its best epoch. (There, confidences are those of the last epoch.) No method of this package is
trained on validation labels; only this script uses them.

KEY=VALUE are keys of ``pagnn-bench run``, such as method.temperature=1000. Finished trials are kept in the file and not
trained again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from audit_table import audit_table
from hydra.errors import HydraException
from torch import Tensor

from pagnn_bench.analysis.tables.render import to_markdown
from pagnn_bench.baselines.fsdcap import (
    FSDCAP,
    class_aware,
    first_classifier,
    predictions,
    subgraph_diffusion,
)
from pagnn_bench.config.atomic import write_atomically
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.sweep import compose_combinations
from pagnn_bench.engine.prepare import MaskedCell, hide_mask
from pagnn_bench.methods.base import Context
from pagnn_bench.methods.imputation import ImputationMethod
from pagnn_bench.missing import IncompleteGraph
from pagnn_bench.records.provenance import collect_provenance
from pagnn_bench.training.loop import train
from pagnn_bench.training.stopping import stopping_rule

INPUTS = ("public", "clean", "method", "diffusion")
PATIENCE, MOST_EPOCHS = 200, 10000  # of the first classifier: run_node.py of FSD-CAP
FILE = Path(__file__).resolve().parent.parent / "results" / "audits" / "fsdcap.json"
CPU = torch.device("cpu")


class Given(ImputationMethod):
    """The network of FSD-CAP on given features."""

    def __init__(self, filled: np.ndarray, like: FSDCAP) -> None:
        super().__init__(like.hidden, like.dropout, like.input_dropout, like.bias, like.layers, like.network)
        self.filled = filled

    def impute(self, graph: IncompleteGraph, context: Context) -> np.ndarray:
        return self.filled


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--data", default="cora,citeseer")
    parser.add_argument("--missing", default="type1,type2")
    parser.add_argument("--rate", default="0.995")
    parser.add_argument("--protocol", default="extreme")
    parser.add_argument("--masks", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1, help="seeds of the network, per mask")
    parser.add_argument("-o", "--output", type=Path, default=FILE)
    options = parser.parse_args()
    groups = (f"{key}={getattr(options, key)}" for key in ("data", "missing", "rate", "protocol"))
    try:
        configs = compose_combinations(["method=fsdcap", *groups, *options.words], multirun=True)
        cells = [Cell.from_config(config) for config in configs]
        trials = json.loads(options.output.read_bytes())["trials"] if options.output.is_file() else []
        done = {(trial["cell"], trial["mask"], trial["seed"]) for trial in trials}
        for cell in cells:
            for mask in range(options.masks):
                seeds = [seed for seed in range(options.seeds) if (cell.id, mask, seed) not in done]
                for trial in audit(cell, mask, seeds):
                    trials.append(trial)
                    document = {"schema": 1, "kind": "audit of FSD-CAP", "trials": trials}
                    write_atomically(options.output, (json.dumps(document, indent=1) + "\n").encode())
                    print(describe(trial), flush=True)
    except (RequestError, HydraException) as error:
        parser.error(str(error).splitlines()[0])
    print()
    requested = {cell.id for cell in cells}
    print(to_markdown(audit_table([trial for trial in trials if trial["cell"] in requested])))
    return 0


def audit(cell: Cell, mask: int, seeds: list[int]) -> Iterator[dict[str, Any]]:
    """The trials of a mask, one per seed: accuracies by input."""
    if not seeds:
        return
    masked = hide_mask(cell, mask, CPU)
    method = masked.method
    assert isinstance(method, FSDCAP)
    inputs = make_inputs(masked)
    sizes = {part: len(getattr(masked.graph.split, part)) for part in ("train", "val", "test")}
    for seed in seeds:
        scores = {name: result(masked, filled, mask, seed) for name, filled in inputs.items()}
        yield {
            "cell": cell.id,
            **{group: getattr(cell, group)["name"] for group in ("data", "missing", "protocol")},
            "rate": cell.rate,
            "mask": mask,
            "seed": seed,
            "settings": method.settings(),
            "nodes": sizes,
            "inputs": scores,
            "provenance": collect_provenance(),
        }


def make_inputs(masked: MaskedCell) -> dict[str, np.ndarray]:
    """The features [n, d] that each network is trained on; observed entries are unchanged."""
    method, graph, context = masked.method, masked.graph, masked.context
    assert isinstance(method, FSDCAP)
    view = masked.for_method()
    spread = subgraph_diffusion(view, method.num_iterations, method.gamma, method.retain, CPU)
    predicted, confidence = predictions(stopped_classifier(masked, spread), method.temperature)
    inputs = {"diffusion": spread, "method": method.impute(view, context)}
    for name, parts in (("public", ("train", "val")), ("clean", ("train",))):
        labels = predicted.copy()
        for part in parts:
            nodes = getattr(graph.split, part)
            labels[nodes] = graph.labels[nodes]
        filled = class_aware(view, spread, labels, confidence)
        inputs[name] = np.where(graph.observed.dense(), spread, filled)
    return {name: np.asarray(inputs[name]) for name in INPUTS}


def stopped_classifier(masked: MaskedCell, spread: np.ndarray) -> Tensor:
    """Logits [n, C] of the first classifier at the epoch with its highest validation accuracy."""
    method, graph = masked.method, masked.graph
    assert isinstance(method, FSDCAP)
    view, rule = masked.for_method(), stopping_rule("val_acc", 1, PATIENCE)
    target = torch.from_numpy(graph.labels[graph.split.val])
    best = torch.empty(0)
    epochs = first_classifier(view, method.propagated(view, spread), masked.context)
    for epoch, network in enumerate(epochs, start=1):
        with torch.no_grad():
            logits = network("all", None)[0]
        own = logits[torch.from_numpy(graph.split.val)]
        loss, right = F.cross_entropy(own, target), (own.argmax(dim=1) == target).float().mean()
        better, stop = rule.update(np.array([loss.item()]), np.array([right.item()]))
        if better[0]:
            best = logits
        if stop[0] or epoch == MOST_EPOCHS:
            break
    return best


def result(masked: MaskedCell, filled: np.ndarray, mask: int, seed: int) -> dict[str, float]:
    """Train the network of the method on these features, with the weights and dropout of the trial."""
    cell, method = masked.cell, masked.method
    assert isinstance(method, FSDCAP)
    prepared = Given(filled, method).prepare(masked.for_method(), masked.context)
    weights, dropout = (cell.trial_seed(purpose, mask, seed) for purpose in ("weights", "dropout"))
    network = prepared.network([weights], masked.protocol.init_gain)
    [record] = train(network, masked.graph, masked.protocol, [dropout], CPU).records
    if record["status"] != "ok":
        raise FloatingPointError(f"{cell}, mask {mask}, seed {seed}: {record['reason']}")
    return {key: record[key] for key in ("test_acc", "val_acc", "best_epoch", "epochs")}


def describe(trial: dict[str, Any]) -> str:
    scores = ", ".join(f"{name} {100 * record['test_acc']:.2f}" for name, record in trial["inputs"].items())
    return f"{trial['data']} {trial['missing']} mask {trial['mask']} seed {trial['seed']}: {scores}"


if __name__ == "__main__":
    sys.exit(main())
