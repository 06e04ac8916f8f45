"""``pagnn-bench compare`` from a file with gaps to the recommendation, with real trainings of a few epochs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pagnn_bench.api.comparison import compare_methods
from pagnn_bench.cli import main
from pagnn_bench.config.catalogue import choices
from pagnn_bench.engine.execute import Executor
from pagnn_bench.records.store import Store
from tests.cli.common import refusal
from tests.imports import answer_without

LABELS = np.arange(80) % 2
RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(80, 4)) + 2 * LABELS[:, None]
VALUES[RNG.random(VALUES.shape) < 0.3] = np.nan
EDGES = np.stack([np.arange(80), (np.arange(80) + 2) % 80])
SPLIT = {"train_idx": np.arange(8), "val_idx": np.arange(8, 20), "test_idx": np.arange(20, 80)}
GRAPH = ["data=custom", "data.path=mine.npz", "data.name=mine", "data.train_per_class=4", "data.num_val=12"]
SHORT = ["protocol=quick", "protocol.max_epochs=5", "device=cpu", "threads=1", "n_jobs=1"]
COMPARE = ["compare", *GRAPH, *SHORT]
TWO = [*COMPARE, "method=mf,pagnn_n", "masks=2", "seeds=2"]


@pytest.fixture(autouse=True)
def graph(folder) -> None:
    write()


def write(**more: np.ndarray) -> None:
    np.savez("mine.npz", features=VALUES, edges=EDGES, labels=LABELS, **more)


def test_help_brings_nothing_heavy():
    answer = answer_without({"torch", "hydra", "omegaconf", "numpy", "pandas"}, ["compare", "--help"])
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "pagnn-bench compare data=custom" in answer.stdout


def test_the_plan_has_every_method_that_suits_the_graph(capsys, folder):
    before = sorted(folder.rglob("*"))
    assert main([*COMPARE, "dry_run=true"]) == 0
    printed = capsys.readouterr().out
    assert sorted(folder.rglob("*")) == before
    planned = re.findall(
        r"^  (\w+) on mine, natural, rate 0 \(max_epochs=5\): 0 done, 15", printed, re.MULTILINE
    )
    out = re.search(r"^Left out: (.*)\.$", printed, re.MULTILINE)[1]
    assert sorted([*planned, "full", "module", "sat"]) == sorted(choices("method"))
    assert "full (sees what is hidden)" in out
    assert "sat (not defined where single entries are missing)" in out
    # Where whole nodes are missing SAT takes part.
    by_node = np.where(np.arange(80)[:, None] % 3 == 0, np.nan, np.nan_to_num(VALUES))
    np.savez("mine.npz", features=by_node, edges=EDGES, labels=LABELS)
    assert main([*COMPARE, "dry_run=true"]) == 0
    assert "  sat on mine, natural, rate 0 " in capsys.readouterr().out


def test_from_the_file_to_the_sentence_and_back_from_the_records(capsys, folder):
    assert main([*TWO, "--html"]) == 0
    printed = capsys.readouterr()
    assert "2 cells, 8 trials: 0 done already, 8 to train" in printed.err
    assert "mean of the test accuracy over 2 splits" in printed.out
    assert (
        re.search(r"^(Use|MF|PaGNN-N) .* of 2 methods", printed.out, re.MULTILINE)
        or "2 methods" in printed.out
    )
    page = folder / "results/compare/mine-natural-0-quick.html"
    assert f"Page: {page.relative_to(folder)}" in printed.out
    assert "Which method to use" in page.read_text(encoding="utf-8")
    # The trials are those of `run`, and either way round nothing is trained twice.
    run = ["run", "-m", *TWO[1:], "missing=natural"]
    assert main(run) == 0
    assert "2 cells, 8 trials: all done already" in capsys.readouterr().out
    assert main([*TWO, "--format", "json"]) == 0
    again = capsys.readouterr()
    assert "all done already" in again.err
    document = json.loads(again.out)
    assert document["sentence"] in printed.out
    assert (document["compared"], document["unit"], document["masks"]) == (2, "split", [0, 1])
    store = Store(folder / "results")
    for method in document["methods"]:
        [cell] = [cell for cell in store.cells() if cell.method["name"] == method["method"]]
        accuracies = [100 * trial.record["test_acc"] for trial in store.load(cell).values()]
        assert method["mean"] == pytest.approx(np.mean(accuracies))
        assert method["n_trials"] == 4


def test_formats_and_files(capsys, folder):
    assert main([*TWO, "rate=0.2", "--format", "csv", "-o", "ranking.csv", "--html", "page.html"]) == 0
    assert "Page: page.html" in capsys.readouterr().out
    ranking = pd.read_csv("ranking.csv")
    assert set(ranking.method) == {"mf", "pagnn_n"}
    # Of the entries hidden on top the truth is known, and only mean filling fills them in.
    errors = ranking.set_index("method").impute_rmse
    assert errors["mf"] > 0
    assert np.isnan(errors["pagnn_n"])
    assert (folder / "page.html").is_file()


def test_python_without_a_shell(folder):
    ending = compare_methods([*TWO[1:], "results_dir=elsewhere"])
    assert ending.code == 0
    assert ending.comparison.frame().shape[0] == 2
    assert ending.comparison.sentence
    assert ending.results_dir == Path("elsewhere")
    assert compare_methods([*TWO[1:], "dry_run=true"]).comparison is None


def test_a_fixed_split_leaves_one_mask(capsys, folder):
    write(**SPLIT)
    assert main([*TWO[:-2], "seeds=3"]) == 0
    printed = capsys.readouterr()
    assert "2 cells, 6 trials" in printed.err
    assert "so masks=1; data.split=random draws five splits" in printed.out
    assert "the seeds on one mask" in printed.out
    assert "masks=2: missing=natural with rate=0" in refusal(capsys, folder, TWO)


def test_settings_are_chosen_on_validation_data(capsys, folder):
    words = [*GRAPH, *SHORT[1:], "method=mf,pagnn_n", "masks=2", "seeds=2", "tune=true"]
    words += ["protocol.tuning.budget=2", "protocol.tuning.seeds=1"]
    assert main(["compare", *words]) == 0
    printed = capsys.readouterr()
    assert "Search on validation data: 4 cells, 4 trials" in printed.err
    assert (
        "Settings: of 2 tried for each method, the best by the validation nodes of mask 1000" in printed.out
    )
    tuned = [word for word in words if word != "tune=true"]
    assert main(["run", "-m", *tuned, "protocol=tuned", "missing=natural"]) == 0
    assert "2 cells, 8 trials: all done already" in capsys.readouterr().out


def test_a_method_that_fails_is_not_ranked_and_tried_again(capsys, folder, monkeypatch):
    train = Executor._train

    def breaks(self, members, *rest):
        if members[0][0].method["name"] == "mf":
            raise ValueError("a slip")
        return train(self, members, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Executor, "_train", breaks)
        assert main([*TWO, "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    by_name = {entry["method"]: entry for entry in document["methods"]}
    assert (by_name["mf"]["rank"], by_name["mf"]["n_failed"]) == (None, 4)
    assert by_name["mf"]["reason"].startswith("2 masks, 4 trials: ValueError: a slip (first traceback in ")
    assert by_name["pagnn_n"]["rank"] == 1
    assert document["sentence"].startswith("Only PaGNN-N can be judged")
    assert main(TWO) == 0
    printed = capsys.readouterr()
    assert "2 cells, 8 trials: 4 done already, 4 to train" in printed.err
    assert "failed" not in printed.out


def test_a_setting_is_for_the_methods_that_have_it(capsys, folder):
    own = [
        "method=mf,module",
        "method.module=torch_geometric.nn.GAT",
        "masks=1",
        "seeds=1",
        "missing=natural",
    ]
    assert main([*COMPARE, *own, "dry_run=true"]) == 0
    printed = capsys.readouterr().out
    assert "module on mine, natural, rate 0 (module=torch_geometric.nn.GAT, max_epochs=5): 0 done" in printed
    assert "mf on mine, natural, rate 0 (max_epochs=5): 0 done" in printed


WRONG = {
    "experiment=smoke": "experiment=smoke: experiments are for `run`; ",
    "rate=0.1,0.2": "rate=0.1,0.2: compare takes several values for method only; ",
    "method.hidden=64": "method.hidden=64: name the methods it is for, such as method=mf,pagnn_n.",
    "method=mf,foo": f"method=foo: choose one of {', '.join(choices('method'))}.",
    "method=mf,fp,mf": "method=mf,fp,mf: mf is there twice; name each method once.",
    "method=": "method=: name methods, such as method=mf,pagnn_n, ",
    "tune=maybe": "tune=maybe: choose true or false.",
    "tune=true": "tune=true: means protocol=tuned with a small budget; leave out protocol=quick.",
    "rate=2.0": "rate=2.0: the missing rate is a number from 0 up to, but not including, 1.",
    "data.path=absent.npz": "data.path=absent.npz: there is no such file.",
    "device=tpu": "device=tpu: ",
    "n_jobs=0": "n_jobs=0: ",
    "--foo": "compare: unrecognized arguments: --foo.",
    "foo": "foo: cannot be read as KEY=VALUE.",
    "-o=absent/ranking.md": "-o absent/ranking.md: there is no folder absent.",
    "--html=absent/page.html": "--html absent/page.html: there is no folder absent.",
    "method=[mf,full] missing=type2": "method=full: sees what is hidden, ",
    "method=mf,sat missing=type2": "method=sat is not defined for missing=type2: ",
    "method=mf,fp method.norm=m": "method.norm: none of the methods mf,fp has this key.",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_makes_no_sense_is_refused_in_one_sentence(capsys, folder, words):
    assert refusal(capsys, folder, [*COMPARE, *words.split()]).startswith(WRONG[words])
