"""``pagnn-bench apply``: a folder with its own description, usable without this package's stacks."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pagnn_bench.cli import main
from tests.cli.common import refusal

SHORT = ["data=synthetic", "data.num_nodes=800", "protocol=quick", "device=cpu", "seeds=2"]
APPLY = ["apply", "method=fp", *SHORT, "-o", "out"]

MODULE = """
import torch
from torch_geometric.nn import GATConv

class MyGNN(torch.nn.Module):
    def __init__(self, in_channels, hidden, out_channels, dropout, heads=2):
        super().__init__()
        self.conv1, self.conv2 = GATConv(in_channels, hidden, heads=heads), GATConv(heads * hidden, out_channels)
        self.norm, self.dropout = torch.nn.BatchNorm1d(heads * hidden), torch.nn.Dropout(dropout)

    def forward(self, x, edge_index, observed):
        x = torch.where(observed, x, 0.1)
        return self.conv2(self.dropout(self.norm(self.conv1(x, edge_index)).relu()), edge_index)
"""


def follow_the_page(folder: Path) -> np.ndarray:
    """Run the Python lines of the README in a separate process in the folder; return the logits."""
    [code] = re.findall(
        r"^```python\n(.*?)^```", (folder / "README.md").read_text(), re.DOTALL | re.MULTILINE
    )
    code = f"import sys; sys.path.append('..')\n{code}\nnp.save('../logits.npy', logits.detach().numpy())"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, timeout=300)
    return np.load("logits.npy")


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("method", ["pagnn_n", "fp", "module"])
def test_the_weights_load_by_the_lines_of_the_page(method, capsys):
    Path("own_gat.py").write_text(MODULE)
    own = ["method.module=own_gat.MyGNN", "method.args.heads=3"] if method == "module" else []
    assert main([*APPLY, f"method={method}", *own]) == 0
    printed = capsys.readouterr().out
    about = json.loads(Path("out/apply.json").read_text())
    seed = about["best_seeds"][0]
    assert about["weights"]["largest_difference_of_logits"] < 1e-5
    logits, saved = follow_the_page(Path("out")), np.load("out/predictions.npz")
    np.testing.assert_allclose(softmax(logits), saved["by_seed"][saved["seeds"] == seed][0], atol=1e-5)
    np.testing.assert_allclose(saved["mean"], saved["by_seed"].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(saved["spread"], saved["by_seed"].std(axis=0, ddof=1), atol=1e-6)
    # All nodes are predicted; the printed accuracy is that of the mean.
    labels, test = saved["given"], saved["part"] == "test"
    accuracy = (saved["mean"].argmax(axis=1) == labels)[test].mean()
    assert f"test accuracy {100 * accuracy:.2f} %" in printed
    assert len(saved["mean"]) == len(np.load(f"out/embeddings-seed{seed}.npz")["embeddings"]) == 800
    if method == "fp":
        filled = np.load("out/attributes.npz")
        known = filled["observed"]
        assert 0.4 < known.mean() < 0.6
        assert np.isin(filled["values"][known], (0, 1)).all()
        assert f"{(~known).sum():,} attributes filled in" in printed
    else:
        assert not Path("out/attributes.npz").exists()
        assert f"no completed attributes: {method} works without filling in attributes" in printed


def test_the_description_in_the_folder(capsys):
    assert main(["run", "method=fp", *SHORT, "masks=1"]) == 0
    assert main([*APPLY, "--best", "2"]) == 0
    assert "2 of 2 recorded trials retrained with the same test accuracy" in capsys.readouterr().out
    about = json.loads(Path("out/apply.json").read_text())
    assert {path.name for path in Path("out").iterdir()} == {"apply.json", *about["files"]}
    for name, digest in about["files"].items():
        assert hashlib.sha256(Path("out", name).read_bytes()).hexdigest() == digest
        assert f"`{name}`" in Path("out/README.md").read_text() or name == "README.md"
    assert [row["record"] for row in about["seeds"]] == ["equal", "equal"]
    scores = {row["seed"]: row["val_acc"] for row in about["seeds"]}
    assert scores[about["best_seeds"][0]] == max(scores.values())
    assert about["settings"]["protocol"]["name"] == "quick"
    assert about["provenance"]["packages"]["torch"]
    assert str(Path.cwd()) not in Path("out/apply.json").read_text() + Path("out/README.md").read_text()


def test_a_record_that_differs_is_reported(capsys):
    """As if another version had trained it: the record of seed 0 has another accuracy."""
    assert main(["run", "method=mf", *SHORT, "masks=1"]) == 0
    from pagnn_bench.records.store import Store

    store = Store("results")
    [cell] = store.cells()
    trial = store.load(cell)[0, 0]
    other = {**trial.record, "test_acc": trial.record["test_acc"] - 0.05}
    store.save(cell, 0, [other], {}, {}, generation=1)
    assert main([*APPLY, "method=mf"]) == 0
    printed = capsys.readouterr().out
    assert "1 of 2 recorded trials retrained with the same test accuracy" in printed
    assert "the largest difference is +5.00 points" in printed
    about = json.loads(Path("out/apply.json").read_text())
    assert [row["record"] for row in about["seeds"]] == ["differs", "equal"]


def test_tables_as_csv_take_the_place_of_an_earlier_folder():
    assert main(APPLY) == 0
    arrays = np.load("out/attributes.npz")
    assert main([*APPLY, "--format", "csv"]) == 0
    assert not list(Path("out").glob("predictions.npz"))
    attributes, observed = (
        pd.read_csv(f"out/{name}.csv", index_col="node") for name in ("attributes", "observed")
    )
    np.testing.assert_allclose(attributes, arrays["values"], rtol=1e-6)
    np.testing.assert_array_equal(observed, arrays["observed"])
    predictions = pd.read_csv("out/predictions.csv", index_col="node")
    assert (predictions.filter(like="p_").to_numpy().argmax(axis=1) == predictions["predicted"]).all()
    assert sorted(path.name for path in Path().iterdir()) == ["out", "results"], (
        "nothing half-written is left"
    )


def test_parquet():
    pytest.importorskip("pyarrow")
    assert main([*APPLY, "--format", "parquet"]) == 0
    assert len(pd.read_parquet("out/predictions.parquet")) == 800


def test_an_end_in_the_middle_leaves_what_was_there(monkeypatch, capsys):
    assert main(APPLY) == 0
    before = {path: path.read_bytes() for path in Path("out").iterdir()}
    monkeypatch.setattr("pagnn_bench.api.folder.describe", lambda answers: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main([*APPLY, "method=mf"])
    assert {path: path.read_bytes() for path in Path("out").iterdir()} == before
    assert sorted(path.name for path in Path().iterdir()) == ["out", "results"]


def test_a_training_that_breaks_off_is_exit_code_1(capsys):
    Path("broken_gat.py").write_text(MODULE.replace("x = torch", "raise ValueError('no idea'); x = torch"))
    assert main([*APPLY, "method=module", "method.module=broken_gat.MyGNN"]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(
        "pagnn-bench: module on synthetic, type1, rate 0.5: method.module=broken_gat.MyGNN: "
    )
    assert not Path("out").exists()


def test_refusals(folder, capsys, monkeypatch):
    Path("full").mkdir()
    Path("full/notes.txt").write_text("mine")
    Path("file").write_text("mine")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    wrong = {
        ("-o", "full"): "-o full: holds notes.txt, which apply did not write; give a new or empty folder.",
        ("-o", "file"): "-o file: this is a file; give the name of a folder.",
        (
            "-o",
            "file/out",
        ): f"-o file/out: cannot be made, because {Path('file').absolute()} is not a writable folder.",
        ("-o", "."): "-o .: this folder is in use; give the name of a new one.",
        ("--format", "xls"): "format=xls: choose one of npz, csv, parquet.",
        ("--format", "parquet"): "format=parquet: Parquet needs the package pyarrow: "
        "pip install 'pagnn-bench[parquet]'.",
        ("--best", "none"): "--best none: give a whole number of at least 1.",
        (
            "masks=2",
        ): "masks: apply works on one incomplete graph, not on 2; give masks=1, or the index of a mask, "
        "such as masks=[2].",
        ("method=fp,mf",): "2 combinations: apply takes one method on one graph.",
        ("lr=1",): "lr: there is no such key; `pagnn-bench run --cfg job` shows all keys.",
        ("what",): "'what': give 'KEY=VALUE' as a string, or key=value as an argument.",
    }
    for words, sentence in wrong.items():
        assert refusal(capsys, folder, [*APPLY, *words]) == sentence
    no_gpu = refusal(capsys, folder, [*APPLY, "device=cuda:99"])
    assert no_gpu.startswith("device=cuda:99: torch sees ")
    assert refusal(capsys, folder, ["apply", "method=fp"]).startswith(
        "apply: the following arguments are required: -o"
    )
