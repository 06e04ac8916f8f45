"""The description in a folder of ``apply``: ``apply.json`` for programs, ``README.md`` for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pagnn_bench.api.answers import Answers
from pagnn_bench.config.text import count
from pagnn_bench.engine.applying import accuracy, largest_difference
from pagnn_bench.methods.portable import Portable
from pagnn_bench.records.provenance import collect_provenance

ABOUT, INPUTS = "apply.json", "input.npz"
SHOWN = ("seed", "status", "val_acc", "test_acc", "best_epoch", "record", "recorded_test_acc", "reason")


def weights_file(seed: int) -> str:
    return f"weights-seed{seed}.pt"


def describe(applied: Answers) -> dict[str, Any]:
    """How the folder was made, as plain data."""
    application = applied.application
    graph, completed = application.graph, application.completed
    trials = applied.trials.to_dict("records")
    attributes: dict[str, Any] = {"none_because": application.why_not}
    if completed is not None:
        attributes = {"filled_in": completed.filled_in, "left_empty": completed.left_empty}
    return {
        "made_by": "pagnn-bench apply",
        "cell": application.cell.id,
        "settings": application.cell.description(),
        "mask": application.mask,
        "graph": {
            "nodes": graph.num_nodes,
            "edges": graph.num_edges,
            "attributes": graph.num_features,
            "observed_share": application.observed_share,
            "classes": applied.classes,
            "split": dict(zip(("train", "val", "test"), graph.split.sizes)),
        },
        "seeds": [{key: row[key] for key in SHOWN if key in row and row[key] == row[key]} for row in trials],
        "mean_over_seeds": {
            f"{part}_acc": accuracy(applied.mean, graph.labels, getattr(graph.split, part))
            for part in ("val", "test")
        },
        "best_seeds": applied.best_seeds,
        "attributes": attributes,
        "embeddings": None if application.best[0].hidden is None else application.best[0].hidden.shape[1],
        "weights": _weights(applied),
        "provenance": collect_provenance(data_checksum=application.checksum),
    }


def _weights(applied: Answers) -> dict[str, Any]:
    best, portable = applied.application.best[0], applied.application.portable
    if not best.state:
        return {"none_because": f"{applied.application.cell.method['name']} has nothing to train"}
    if portable is None:
        names = {name: list(values.shape) for name, values in best.state.items()}
        return {"module": None, "parameters": names}
    return {
        "module": portable.module,
        "arguments": dict(portable.arguments),
        "largest_difference_of_logits": largest_difference(portable, best),
        "code": code(portable, best.seed),
    }


def code(portable: Portable, seed: int) -> list[str]:
    """The lines of Python that restore a network; to be run in the folder."""
    package, _, name = portable.module.rpartition(".")
    arguments = ", ".join(f"{key}={value!r}" for key, value in portable.arguments.items())
    return [
        "import numpy as np, torch",
        f"from {package} import {name}",
        f'given = {{name: torch.from_numpy(values) for name, values in np.load("{INPUTS}").items()}}',
        f"model = {name}({arguments}).eval()",
        f'model.load_state_dict(torch.load("{weights_file(seed)}"))',
        "logits = model(**given)  # [nodes, classes]",
    ]


def readme(about: Mapping[str, Any], format: str) -> str:
    """The page for people, from the data of :func:`describe`."""
    settings, averaged, graph = about["settings"], about["mean_over_seeds"], about["graph"]
    label = settings["method"].get("label", settings["method"]["name"])
    good = [row for row in about["seeds"] if row["status"] == "ok"]
    lines = [
        f"# {label} on {settings['data'].get('label', settings['data']['name'])}",
        "",
        f"Made by `pagnn-bench apply` (version {about['provenance']['version']}) from "
        f"{count(len(good), 'trained network')} on a graph of {graph['nodes']:,} nodes, with "
        f"{100 * graph['observed_share']:.3g} % of the attributes observed. "
        f"Accuracy of the averaged prediction: {100 * averaged['val_acc']:.2f} % on validation nodes, "
        f"{100 * averaged['test_acc']:.2f} % on test nodes. `{ABOUT}` has every setting, version and seed.",
        "",
        "| file | |",
        "|---|---|",
        *_file_rows(about, format),
        "",
        f"The best seeds by validation accuracy: {', '.join(map(str, about['best_seeds']))}.",
    ]
    if "none_because" in about["attributes"]:
        lines.append(f"No completed attributes: {about['attributes']['none_because']}.")
    lines += _how_to_load(about["weights"], label)
    return "\n".join(lines) + "\n"


def _file_rows(about: Mapping[str, Any], format: str) -> list[str]:
    """A table row for every file."""
    weights, attributes = about["weights"], about["attributes"]
    rows = [
        f"| `predictions.{format}` | for every node the likeliest class, and for each class the probability: mean and "
        "standard deviation over seeds |"
    ]
    if "filled_in" in attributes:
        observed = "`observed` in it" if format == "npz" else f"`observed.{format}`"
        empty = f"; {attributes['left_empty']:,} are left empty" if attributes["left_empty"] else ""
        rows.append(
            f"| `attributes.{format}` | the attributes in their own units: observed ones as given, "
            f"{attributes['filled_in']:,} filled in{empty}. {observed} marks the observed ones |"
        )
    for seed in about["best_seeds"]:
        if about["embeddings"]:
            rows.append(f"| `embeddings-seed{seed}.{format}` | the last hidden layer |")
        if "none_because" not in weights:
            rows.append(f"| `{weights_file(seed)}` | the weights |")
    if weights.get("module"):
        rows.append(f"| `{INPUTS}` | the graph as the network sees it |")
    return rows


def _how_to_load(weights: Mapping[str, Any], label: str) -> list[str]:
    """The lines on restoring the network; none if it has no weights."""
    if weights.get("module"):
        difference = weights["largest_difference_of_logits"]
        return [
            "",
            "To load the network as a torch module:",
            "",
            "```python",
            *weights["code"],
            "```",
            "",
            f"Its logits differ from those of the training by {difference:.1g} at most.",
        ]
    if "parameters" in weights:
        return [f"The weights are a dictionary of tensors; no ready-made module computes what {label} does."]
    return []
