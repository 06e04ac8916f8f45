"""Warnings of this package reach the user in every command, though Hydra has a say in how logging is set up."""

from __future__ import annotations

from pagnn_bench.cli import main

SMALL = ("data=synthetic", "data.num_nodes=300", "data.num_val=50", "data.num_test=50", "protocol=quick")


def test_a_damaged_record_is_named_by_run(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    command = ["run", *SMALL, "protocol.max_epochs=3", "masks=1", "seeds=1", "threads=1"]
    assert main(command) == 0
    record = next(tmp_path.glob("results/cells/*/mask0*.json"))
    record.write_text("{")
    capfd.readouterr()
    assert main(command) == 0
    out, err = capfd.readouterr()
    assert "0 done already, 1 to train" in out
    assert f"warning: results/cells/{record.parent.name}/{record.name}" in err
    assert "set aside" in err
