"""docs/data.md is right: a graph with gaps, from the file to the table."""

from __future__ import annotations

import re
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from pagnn_bench.cli import main
from tests.cli.common import refusal
from tests.test_documented_commands import ROOT, commands_in

PAGE = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
SHORT = [
    "data.train_per_class=2",
    "data.num_val=6",
    "protocol=quick",
    "masks=2",
    "seeds=1",
    "device=cpu",
    "threads=1",
]


def block(language: str, words: str) -> str:
    """The block of the page that contains these words."""
    [found] = [
        text for text in re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.M) if words in text
    ]
    return found


def accuracies(text: str) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in re.findall(r"^(\S+) on .*accuracy ([\d.]+) %", text, re.MULTILINE)
    }


def test_the_example_of_the_page(capsys):
    exec(block("python", "load_digits"), {})
    [words] = commands_in(block("bash", "threads=1"))
    assert main([*words, "device=cpu"]) == 0
    printed, written = capsys.readouterr().out, block("text", "on digits")
    assert printed.count("4 trials on 2 splits") == 3
    assert accuracies(printed).keys() == accuracies(written).keys() == {"MF", "PaGNN-N", "FP"}
    for name, value in accuracies(printed).items():
        assert value == pytest.approx(accuracies(written)[name], abs=1)
    assert main([*words, "device=cpu"]) == 0
    again = capsys.readouterr().out
    assert "all done already" in again
    assert accuracies(again) == accuracies(printed)
    # Further hiding on top: mean filling is wrong by about a standard deviation, diffusion by less.
    assert main([*words, "device=cpu", "rate=0.2", "method=mf,fp"]) == 0
    errors = re.findall(
        r"4 trials on 2 splits; .*; RMSE ([\d.]+) where the truth is known", capsys.readouterr().out
    )
    mean, diffused = map(float, errors)
    assert mean == pytest.approx(1, abs=0.2)
    assert diffused < 0.8
    assert main(["tables"]) == 0
    assert "n = 4 trials on 2 splits" in capsys.readouterr().out


LABELS = np.arange(40) % 2
VALUES = np.random.default_rng(0).normal(size=(40, 3)) + LABELS[:, None]
VALUES[::3, 0] = np.nan
EDGES = np.stack([np.arange(40), (np.arange(40) + 2) % 40])


def write_npz() -> list[str]:
    np.savez("mygraph.npz", features=VALUES, edges=EDGES, labels=LABELS)
    return ["data=custom", "data.path=mygraph.npz"]


def write_data() -> list[str]:
    x, edges, y = map(torch.from_numpy, (VALUES, EDGES, LABELS))
    torch.save(Data(x=x.float(), edge_index=edges, y=y), "mygraph.pt")
    return ["data=custom", "data.path=mygraph.pt"]


def write_tables() -> list[str]:
    rows = [
        ",".join("" if np.isnan(v) else repr(float(v)) for v in row) + f",{y}"
        for row, y in zip(VALUES, LABELS)
    ]
    Path("nodes.csv").write_text("\n".join(["a,b,c,topic", *rows]))
    Path("edges.csv").write_text("\n".join(["from,to", *(f"{a},{b}" for a, b in EDGES.T)]))
    return ["data=table", "data.nodes=nodes.csv", "data.edges=edges.csv", "data.label=topic"]


def write_graphml() -> list[str]:
    graph = nx.Graph()
    for node, (row, label) in enumerate(zip(VALUES, LABELS)):
        values = {name: float(v) for name, v in zip("abc", row) if not np.isnan(v)}
        graph.add_node(node, **values, topic=int(label))
    graph.add_edges_from(EDGES.T.tolist())
    nx.write_graphml(graph, "mygraph.graphml")
    return ["data=table", "data.nodes=mygraph.graphml", "data.label=topic"]


def test_one_graph_through_every_door(capsys):
    """GraphML may order columns differently (b is complete and seen first), so it is only run."""
    printed = []
    for door in (write_npz, write_data, write_tables, write_graphml):
        words = [
            "run",
            *door(),
            "data.name=mine",
            "missing=natural",
            "method=mf",
            "data.standardise=true",
            *SHORT,
        ]
        assert main([*words, f"results_dir={door.__name__}"]) == 0
        printed.append(
            re.findall(r"^MF on mine, natural, rate 0: .*$", capsys.readouterr().out, re.MULTILINE)
        )
    assert printed[0] == printed[1] == printed[2]
    assert len(printed[3]) == 1


def test_wrong_files_are_refused_in_one_sentence(folder, capsys):
    tables = write_tables()
    run = ["run", *tables, "missing=natural", "method=mf", *SHORT]
    Path("edges.csv").write_text("from,to\n0,1\n0,99\n")
    Path("notes.csv").write_text("a,topic\nhello,1\n")
    wrong = {
        (): "data.edges=edges.csv: 1 of 4 ends name no node, such as 99",
        ("data.label=subject",): "data.label=subject: no such column",
        ("data.nodes=notes.csv",): "data.nodes=notes.csv: the column a is text, such as hello",
        ("data.nodes=absent.csv",): "data.nodes=absent.csv: there is no such file.",
    }
    for words, sentence in wrong.items():
        assert refusal(capsys, folder, [*run, *words]).startswith(sentence)


def test_masks_that_would_all_be_the_same(folder, capsys):
    parts = {"train_idx": np.arange(6), "val_idx": np.arange(6, 12), "test_idx": np.arange(12, 40)}
    np.savez("mygraph.npz", features=VALUES, edges=EDGES, labels=LABELS, **parts)
    run = ["run", "data=custom", "data.path=mygraph.npz", "missing=natural", "method=mf", *SHORT]
    assert refusal(capsys, folder, run).startswith("masks=2: missing=natural with rate=0 draws nothing")
    assert main([*run, "masks=1"]) == 0
    assert "1 trial on 1 mask;" in capsys.readouterr().out
    assert main([*run, "data.split=random"]) == 0
    assert "2 trials on 2 splits;" in capsys.readouterr().out
