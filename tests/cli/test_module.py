"""The user's own module from the command line: found in the current directory, trained, distinguished in tables."""

from __future__ import annotations

import re
import sys

import pytest

from pagnn_bench.cli import main
from tests.cli.common import RUN, refusal

MINE = """
import torch
from torch_geometric.nn import SAGEConv

class Mine(torch.nn.Module):
    def __init__(self, in_channels, hidden, out_channels, dropout, depth=1):
        super().__init__()
        self.depth, self.drop = depth, torch.nn.Dropout(dropout)
        self.conv, self.out = SAGEConv(in_channels, hidden), SAGEConv(hidden, out_channels)

    def forward(self, x, edge_index, observed):
        return self.out(self.drop(self.conv(x, edge_index).relu()), edge_index)
"""
OWN = [*RUN, "method=module", "method.module=mine_module.Mine", "protocol.max_epochs=5"]


@pytest.fixture
def mine(folder, monkeypatch):
    (folder / "mine_module.py").write_text(MINE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "mine_module", raising=False)
    yield
    sys.modules.pop("mine_module", None)


def test_it_is_trained_and_the_same_command_finds_it_done(capsys, folder, mine):
    assert main(OWN) == 0
    printed = capsys.readouterr().out
    assert re.search(
        r"^Module on Synthetic.*\(.*module=mine_module.Mine.*\): test accuracy \d", printed, re.M
    )
    assert main(OWN) == 0
    assert "all done already, nothing to train" in capsys.readouterr().out


def test_arguments_make_cells_of_their_own(capsys, folder, mine):
    assert main([*OWN, "-m", "method.args.depth=2,3"]) == 0
    printed = capsys.readouterr().out
    assert "2 cells, 2 trials" in printed
    assert "args.depth=2,module=mine_module.Mine" in printed
    assert "unset" not in printed
    assert main([*OWN, "method.args={depth: 3}"]) == 0
    assert "all done already" in capsys.readouterr().out
    assert refusal(capsys, folder, [*OWN, "method.args.deep=2"]) == (
        "method.args.deep: mine_module.Mine has no such argument; "
        "it has in_channels, hidden, out_channels, dropout, depth."
    )
    assert refusal(capsys, folder, [*OWN, "method.arg.depth=2"]).startswith(
        "method.arg.depth: there is no such"
    )


def test_a_model_of_torch_geometric_and_a_backbone(capsys, folder):
    short = [*RUN, "protocol.max_epochs=3"]
    assert main([*short, "method=module", "method.module=torch_geometric.nn.GAT", "method.args.heads=4"]) == 0
    assert "args.heads=4,module=torch_geometric.nn.GAT" in capsys.readouterr().out
    assert main([*short, "-m", "method=mf,fp", "method.network=gcn,sage,gat"]) == 0
    printed = capsys.readouterr().out
    assert "6 cells, 6 trials" in printed
    assert "network=gat" in printed


def test_the_experiment_on_backbones_has_thirty_cells(capsys, folder):
    assert main(["run", "-m", "experiment=backbones", "data=synthetic", "dry_run=true"]) == 0
    assert "30 cells, 750 trials" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["method=module", "method.module"], ["method=mf", "method.network"]])
def test_what_cannot_be_made_is_refused_before_anything_is_trained(capsys, folder, words):
    """PNA needs statistics of the graph, but complains only when its layers are made."""
    key = words[1]
    sentence = refusal(capsys, folder, [*RUN, words[0], f"{key}=torch_geometric.nn.PNA"])
    assert sentence.startswith(f"{key}=torch_geometric.nn.PNA: cannot be made with in_channels=")
    assert sentence.endswith("'aggregators', 'scalers', and 'deg').")


def test_what_is_no_module(capsys, folder, mine):
    sentence = refusal(capsys, folder, [*RUN, "method=module", "method.module=mine_module.Yours"])
    assert sentence.startswith("method.module=mine_module.Yours: cannot be imported (AttributeError: ")
    sentence = refusal(capsys, folder, [*RUN, "method=module", "method.module=MyGNN"])
    assert sentence == "method.module=MyGNN: cannot be imported (give MODULE.CLASS)."
    sentence = refusal(capsys, folder, [*RUN, "method=module", "method.module=3"])
    assert sentence == "method.module=3: give the dotted name of a class, such as mine.MyGNN."
