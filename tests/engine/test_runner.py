"""``pagnn-bench run`` from end to end: what is trained, kept, resumed and shown."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pagnn_bench.cli import main
from pagnn_bench.records.sealed import StoreError
from pagnn_bench.records.store import Store

TINY = [
    *("data=synthetic", "data.num_nodes=140", "data.train_per_class=5", "data.num_val=35", "method=zero"),
    *("protocol=quick", "protocol.max_epochs=15", "masks=1", "seeds=2", "device=cpu", "threads=1"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def records(results: Path | str = "results") -> dict[tuple[str, int, int], dict[str, Any]]:
    """Every trial that counts, by (cell, mask, seed); records hold no times."""
    store = Store(results)
    found = {
        (cell.id, mask, seed): trial.record
        for cell in store.cells()
        for (mask, seed), trial in store.load(cell).items()
    }
    assert not store.damaged
    return found


def start(*arguments: str) -> subprocess.Popen[str]:
    """The same command in a process of its own."""
    code = "import sys; from pagnn_bench.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "run", *TINY, *arguments]
    # A job in the background of a shell ignores SIGINT, and so would what it starts.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, **pipes, text=True, preexec_fn=heed)


def wait_for_batches(process: subprocess.Popen[str], number: int) -> None:
    """Return once the process has saved so many batches."""
    while len(list(Path("results").glob("cells/*/mask*.json"))) < number:
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)


# -- What is trained, and what is shown ----------------------------------------------------------------------


def test_a_run_says_what_came_out_and_where_it_is(capsys):
    assert main(["run", *TINY]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 cell, 2 trials: 0 done already, 2 to train."
    head, _, outcome = lines[1].partition(": ")
    assert head.startswith("Zero filling on Synthetic, type1, rate 0.5 (")
    assert "max_epochs=15" in head, "settings that are not the default are shown"
    assert outcome.startswith("test accuracy ")
    assert lines[2].startswith("  2 trials on 1 mask; 15 epochs, ")
    (cell,) = Path("results/cells").iterdir()
    assert lines[-1] == f"Records: {cell}"
    assert [record["status"] for record in records().values()] == ["ok", "ok"]


def test_the_same_command_again_trains_nothing_and_needs_no_torch(capsys):
    assert main(["run", *TINY]) == 0
    before = records()
    shown = capsys.readouterr().out.splitlines()[1:]
    code = (
        "import sys; from pagnn_bench.cli import main; code = main(sys.argv[1:])\n"
        "assert 'torch' not in sys.modules; sys.exit(code)"
    )
    answer = subprocess.run([sys.executable, "-c", code, "run", *TINY], capture_output=True, text=True)
    assert (answer.returncode, answer.stderr) == (0, "")
    head, *rest = answer.stdout.splitlines()
    assert head == "1 cell, 2 trials: all done already, nothing to train (force=true trains again)."
    assert rest == shown
    assert records() == before


def test_cells_of_the_same_name_are_told_apart(capsys):
    words = ["-m", "protocol.weight_decay=0,0.01", "protocol.max_epochs=3"]
    assert main(["run", *TINY, *words, "dry_run=true"]) == 0
    planned = capsys.readouterr().out
    assert main(["run", *TINY, *words]) == 0
    trained = capsys.readouterr().out
    assert main(["status"]) == 0
    for text in (planned, trained, capsys.readouterr().out):
        assert len([line for line in text.splitlines() if "weight_decay=0)" in line]) == 1
        assert len([line for line in text.splitlines() if "weight_decay=0.01)" in line]) == 1
    assert main(["run", *TINY, "-m", "protocol=quick,paper", "protocol.max_epochs=3"]) == 0
    assert "rate 0.5 (protocol paper, " in capsys.readouterr().out


def test_what_a_cpu_took_says_nothing_about_a_gpu(capsys):
    assert main(["run", *TINY]) == 0
    for device, has_estimate in (("cpu", True), ("cuda", False)):
        capsys.readouterr()
        assert main(["run", *TINY, "seeds=9", f"device={device}", "dry_run=true"]) == 0
        assert (", about " in capsys.readouterr().out) == has_estimate


def test_more_seeds_extend_a_result_and_change_none(capsys):
    assert main(["run", *TINY]) == 0
    before = records()
    assert main(["run", *TINY, "seeds=3"]) == 0
    assert "3 trials: 2 done already, 1 to train." in capsys.readouterr().out
    after = records()
    assert len(after) == 3
    assert {key: after[key] for key in before} == before


def test_force_trains_again_and_gives_the_same():
    assert main(["run", *TINY]) == 0
    before = records()
    assert main(["run", *TINY, "force=true"]) == 0
    assert records() == before
    (cell,) = Store("results").cells()
    assert {trial.batch.generation for trial in Store("results").load(cell).values()} == {1}


def test_a_multirun_is_one_plan_over_all_combinations(capsys, folder):
    assert main(["run", *TINY, "seeds=1", "-m", "method=zero,mlp", "rate=0.1,0.9"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("4 cells, 4 trials: 0 done already, 4 to train")
    assert out.count("test accuracy") == 4
    assert len({cell for cell, _, _ in records()}) == 4
    assert [path.name for path in folder.iterdir()] == ["results"], "Hydra leaves nothing behind"


def test_combinations_that_differ_in_seeds_only_are_one_cell(capsys):
    assert main(["run", *TINY, "-m", "seeds=[0],[0,2]"]) == 0
    assert capsys.readouterr().out.startswith("1 cell, 2 trials:")
    assert [seed for _, _, seed in records()] == [0, 2]


def test_an_experiment_brings_its_own_combinations(capsys):
    words = [word for word in TINY if not word.startswith("method=")]
    assert main(["run", "experiment=demo", *words, "seeds=1", "rate=0.5", "method=zero,pagnn_m"]) == 0
    assert capsys.readouterr().out.startswith("2 cells, 2 trials:")


@pytest.mark.parametrize("place", ["elsewhere/deep", "2024"])
def test_results_dir_is_relative_to_the_current_directory(folder, place):
    assert main(["run", *TINY, "seeds=1", f"results_dir={place}"]) == 0
    assert len(records(folder / place)) == 1
    assert not (folder / "results").exists()


# -- What goes wrong -----------------------------------------------------------------------------------------

BREAKABLE = """
from pathlib import Path
from pagnn_bench.baselines.zero import Zero

class Breakable(Zero):
    def prepare(self, *arguments, **options):
        if Path("break").exists():
            raise RuntimeError("it broke")
        return super().prepare(*arguments, **options)
"""
BREAKABLE_YAML = """
defaults: [base/two_layer@_here_, _self_]
name: breakable
description: fails while there is a file of the name break
_target_: breakable.Breakable
"""


def test_a_batch_that_breaks_is_told_stops_nobody_and_is_tried_again(capsys, folder, monkeypatch):
    """By a method of the user's own: a class somewhere and a YAML in a folder that --config-dir names."""
    (folder / "method").mkdir()
    (folder / "method" / "breakable.yaml").write_text(BREAKABLE_YAML)
    (folder / "breakable.py").write_text(BREAKABLE)
    (folder / "break").touch()
    monkeypatch.syspath_prepend(folder)
    command = ["run", "--config-dir", ".", *TINY, "-m", "method=breakable,zero"]

    assert main(command) == 1
    out = capsys.readouterr().out
    assert re.search(r"breakable on Synthetic, type1, rate 0\.5 \(.*\): no finished trial\n", out)
    assert "failed: mask 0, 2 seeds: RuntimeError: it broke (traceback in results/cells/" in out
    assert len(records()) == 2, "the other method has its trials"
    (note,) = folder.glob("results/cells/*/*.failed.json")
    assert "in prepare" in note.read_text()

    (folder / "break").unlink()
    assert main(command) == 0
    out = capsys.readouterr().out
    assert out.startswith("2 cells, 4 trials: 2 done already, 2 to train")
    assert "failed" not in out
    assert len(records()) == 4
    assert not note.exists()


def test_a_full_disk_ends_the_run_in_one_sentence(capsys, monkeypatch):
    def full(*_: Any, **__: Any) -> None:
        raise StoreError("results/x.json could not be saved: No space left on device.")

    monkeypatch.setattr(Store, "save", full)
    assert main(["run", *TINY]) == 1
    assert (
        "pagnn-bench: results/x.json could not be saved: No space left on device. " in capsys.readouterr().err
    )


# The first of these two cells is done at once, the second never.
SHORT_AND_ENDLESS = ["-m", "protocol.patience=1000000", "protocol.max_epochs=5,1000000"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_keeps_what_is_finished_and_says_how_to_go_on(number):
    process = start(*SHORT_AND_ENDLESS)
    wait_for_batches(process, 1)
    time.sleep(0.2)  # into the second cell
    process.send_signal(number)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert err.endswith("Stopped. Every finished batch is kept; the same command continues from here.\n")
    assert "Traceback" not in err
    assert out == "2 cells, 4 trials: 0 done already, 4 to train.\n"  # that it stopped is the last word
    assert [record["epochs"] for record in records().values()] == [5, 5]


def test_a_killed_run_resumes_and_ends_as_if_nothing_had_happened(capsys):
    command = ["seeds=12", "stack=1", "protocol.max_epochs=60"]
    process = start(*command)
    wait_for_batches(process, 2)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    kept = records()
    assert 2 <= len(kept) < 12, "otherwise it was not killed in the middle"
    assert main(["run", *TINY, *command]) == 0
    assert f"{len(kept)} done already, {12 - len(kept)} to train." in capsys.readouterr().out
    assert main(["run", *TINY, *command, "results_dir=undisturbed"]) == 0
    assert records() == records("undisturbed")
