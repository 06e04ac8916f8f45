"""Wrong requests: each is refused in one sentence that names the mistake, before anything is written."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import pytest
import yaml

from pagnn_bench.cli import COMMANDS, main
from pagnn_bench.config.catalogue import GROUPS, PACKAGED, choices
from pagnn_bench.data import fetch
from pagnn_bench.engine.backends import BACKENDS, check_backend
from pagnn_bench.training.stopping import RULES
from tests.cli.common import RUN, refusal

WHOLE, SHARE = ("whole number", "at least 1"), ("from 0", "not including, 1")
INDICES = ("count of at least 1", "list of indices", "[0,1,2]")
DEVICES = ("auto", "cpu", "cuda", "cuda:0")
FLAG = ("true", "false")
LETTERS = ("letters", "digits", "dots", "dashes", "underscores")
NO_KEY = ("no such key", "pagnn-bench run --cfg job")

# The wrong word → what the sentence begins with (key and value as given), and what it must offer instead.
WRONG: dict[str, tuple[str, tuple[str, ...]]] = {
    **{f"{group}=foo": (f"{group}=foo", tuple(choices(group))) for group in GROUPS},
    "method=": ("method=", tuple(choices("method"))),
    "method=[mf,zero]": ("method=[mf,zero]", (*choices("method"), "-m method=mf,zero")),
    "missing=1": ("missing=1", tuple(choices("missing"))),
    "data=null": ("data=null", tuple(choices("data"))),
    "protocol=true": ("protocol=true", tuple(choices("protocol"))),
    "foo=1": ("foo", NO_KEY),
    "method.foo=1": ("method.foo", NO_KEY),
    "rate=1.0": ("rate=1.0", SHARE),
    "rate=-0.1": ("rate=-0.1", SHARE),
    "rate=abc": ("rate=abc", SHARE),
    "rate=nan": ("rate=nan", SHARE),
    "rate=0.99999999999": ("rate=0.99999999999", SHARE),
    "rate=0.1,0.2": ("rate=0.1,0.2", ("-m",)),
    "method=mf,zero": ("method=mf,zero", ("-m",)),
    "seeds=0,1": ("seeds=0,1", ("-m", "seeds=[0,1]")),
    "rate==1": ("rate==1", ("KEY=VALUE",)),
    "rate": ("rate", ("KEY=VALUE",)),
    "=3": ("=3", ("KEY=VALUE",)),
    "data.path=~/a": ("data.path=~/a", ("KEY=VALUE", "'data.path=\"~/a\"'")),
    "masks=0": ("masks=0", INDICES),
    "masks=x": ("masks=x", INDICES),
    "masks=100001": ("masks=100001", ("at most 100000",)),
    "seeds=-1": ("seeds=-1", INDICES),
    "seeds=[0,0]": ("seeds=[0, 0]", ("twice",)),
    "stack=0": ("stack=0", WHOLE),
    "n_jobs=0": ("n_jobs=0", WHOLE),
    "threads=0": ("threads=0", ("from 1 to 1024", "null")),
    "threads=100000": ("threads=100000", ("from 1 to 1024", "null")),
    "force=maybe": ("force=maybe", FLAG),
    "results_dir=null": ("results_dir=None", ("folder",)),
    "device=tpu": ("device=tpu", DEVICES),
    "tensorboard=true": ("tensorboard=True", ("folder",)),
    "device=1": ("device=1", DEVICES),
    "method.dropout=1": ("method.dropout=1.0", SHARE),
    "method.hidden=0": ("method.hidden=0", WHOLE),
    "method.hidden=true": ("method.hidden=True", WHOLE),
    "method.layers=1": ("method.layers=1", ("whole number", "at least 2")),
    "method.input_dropout=x": ("method.input_dropout=x", ("post", "pre", "none")),
    "method.bias=no": ("method.bias=no", FLAG),
    "method.mask_update=off": ("method.mask_update=off", FLAG),
    "method.norm=x": ("method.norm=x", ("m", "n")),
    "method.name=a/b": ("method.name=a/b", LETTERS),
    "protocol.name=null": ("protocol.name=None", LETTERS),
    "+protocol.wieght_decay=1": ("protocol.wieght_decay", ("protocol has no such key",)),
    "+missing.low=0.1": ("missing.low", ("pattern rows has no such key",)),
    "+data.num_vall=9": ("data.num_vall", ("synthetic has no such key",)),
    "+backend.foo=1": ("backend.foo", ("backend=local has no such key",)),
    "+seed=3": ("seed=3", ("no such key",)),
    "~protocol.lr": ("protocol.lr", ("protocol needs this key",)),
    "~missing.exact": ("missing.exact", ("pattern rows needs this key",)),
    "~data.num_val": ("data.num_val", ("synthetic needs this key",)),
    "backend.name=ray": ("backend.address", ("backend=ray needs this key",)),
    "backend.name=x": ("backend=x", tuple(BACKENDS)),
    "missing.pattern=foo": ("missing.pattern=foo", ("rows", "cells", "biased")),
    "missing.exact=x": ("missing.exact=x", FLAG),
    "method.hidden=${foo}": ("method.hidden", ("'foo' not found",)),
    "protocol.stopping=never": ("protocol.stopping=never", tuple(RULES)),
    "protocol.stopping=[a]": ("protocol.stopping=['a']", tuple(RULES)),
    "protocol.feature_norm=x": ("protocol.feature_norm=x", ("none", "row")),
    "protocol.lr=-1": ("protocol.lr=-1.0", ("above 0",)),
    "protocol.lr=true": ("protocol.lr=True", ("above 0",)),
    "protocol.weight_decay=-1": ("protocol.weight_decay=-1.0", ("not below 0",)),
    "protocol.patience=0": ("protocol.patience=0", WHOLE),
    "data.num_nodes=1000000000": ("data.num_nodes=1000000000", ("from 4 to 1e+08",)),
    "data.num_nodes=10": ("data.num_nodes=10", ("two per class", "data.num_classes=7")),
    "data.homophily=2": ("data.homophily=2.0", ("from 0 to 1",)),
    "data.num_val=0": ("data.num_val=0", WHOLE),
    "~method": ("method", ("~method",)),
    "~protocol": ("protocol", ("~protocol",)),
    "~rate": ("rate", ("~rate",)),
    "~backend": ("backend", ("~backend",)),
    "precision=half": ("protocol.precision=half", ("float32", "bfloat16")),
    "--foo": ("run", ("--foo", "pagnn-bench run --help")),
    "--resolve": ("run --resolve", ("--cfg",)),
}


def check_refusal(sentence: str, start: str, offered: Iterable[str]) -> None:
    """A sentence of the form "key=value: choices."."""
    assert sentence.startswith(f"{start}: ")
    assert sentence.endswith(".")
    for choice in offered:
        assert choice in sentence.removeprefix(start)


@pytest.mark.parametrize("word", WRONG)
def test_a_wrong_word_is_named_with_the_choices(capsys, folder, word):
    check_refusal(refusal(capsys, folder, [*RUN, word]), *WRONG[word])


TUNED: dict[str, tuple[str, tuple[str, ...]]] = {
    "protocol.tuning=3": ("protocol.tuning=3", ("protocol.tuning.budget=20",)),
    "protocol.tuning.space=3": ("protocol.tuning.space=3", ("lists of values",)),
    "protocol.tuning.own=3": ("protocol.tuning.own=3", ("lists of values",)),
    "protocol.tuning.own.gcnmf=3": ("protocol.tuning.own.gcnmf=3", ("lists of values",)),
    "~protocol.tuning.space": ("protocol.tuning.space=None", ("lists of values",)),
    "protocol.tuning.space={protocol.lr: 1}": ("protocol.tuning", ("protocol.lr=1", "list", "log_uniform")),
    "protocol.tuning.budget=0": ("protocol.tuning.budget=0", WHOLE),
    "protocol.tuning.mask=-1": ("protocol.tuning.mask=-1", ("whole number", "at least 0")),
    "+protocol.tuning.rungs=[3]": ("protocol.tuning.rungs=[3]", ("pairs",)),
    "rate=abc": ("rate=abc", SHARE),
    "~rate": ("rate", ("~rate",)),
    "seeds=abc": ("seeds=abc", INDICES),
    "protocol.name=a/b": ("protocol.name=a/b", LETTERS),
}


OPTIONS: dict[str, tuple[str, ...]] = {
    "slurm batches_per_job=0": WHOLE,
    "slurm array_size=-5": WHOLE,
    "slurm minutes=abc": WHOLE,
    "slurm more=null": ("sbatch", "{account: mine}"),
    "slurm cluster=foo": ("slurm", "local"),
    "slurm memory_gb=0": ("above 0",),
    "dask address=5": ("text", "null"),
    "dask timeout=abc": ("above 0",),
    "dask shared_storage=1": FLAG,
    "ray gpus=-1": ("not below 0",),
    "ray retries=0.5": ("whole number", "at least 0"),
}


@pytest.mark.parametrize("words", OPTIONS)
def test_a_wrong_option_of_a_backend_is_refused_before_it_is_reached(capsys, folder, words):
    name, _, option = words.partition(" ")
    sentence = refusal(capsys, folder, [*RUN, f"backend={name}", f"backend.{option}", "dry_run=true"])
    check_refusal(sentence, f"backend.{option.replace('null', 'None')}", OPTIONS[words])


def test_every_backend_and_each_of_its_options_is_known():
    files = list((PACKAGED / "backend").glob("*.yaml"))
    assert {file.stem for file in files} == BACKENDS.keys()
    for file in files:
        check_backend(yaml.safe_load(file.read_text(encoding="utf-8")))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize(
    "command",
    [
        [*RUN[:1], "data=cora", "data.root=closed"],
        [*RUN[:1], "data=custom", "data.path=closed/graph.npz"],
        ["list", "--config-dir", "closed"],
        [*RUN, "--config-dir", "closed"],
    ],
)
def test_a_folder_that_may_not_be_read(capsys, folder, command):
    (folder / "closed").mkdir(mode=0o000)
    assert "closed" in refusal(capsys, folder, command)


@pytest.mark.parametrize("word", TUNED)
def test_a_search_that_makes_no_sense_is_refused(capsys, folder, word):
    check_refusal(refusal(capsys, folder, [*RUN, "protocol=tuned", word]), *TUNED[word])


@pytest.mark.parametrize(
    "words",
    [
        *("method.hidden=0", "protocol.lr=0", "missing.exact=x", "+data.num_vall=9", "data.split=public"),
        *("data.dataset=Nope data=pyg", "data.dataset=null data=pyg", "data.split=foo data=cora"),
    ],
)
def test_a_dry_run_refuses_what_the_run_would_refuse(capsys, folder, words):
    key = words.partition("=")[0].removeprefix("+")
    assert refusal(capsys, folder, [*RUN, *words.split(), "dry_run=true"]).startswith(key)


def test_nothing_is_said_of_training_before_a_refusal(capsys, folder):
    assert main([*RUN, "method.hidden=0"]) == 2
    assert capsys.readouterr().out == ""


def test_wrong_combinations(capsys, folder):
    for words, start, offered in (
        ("method=gcnmf method.reference_quirks=true precision=bfloat16", "method=gcnmf", ("float32",)),
        ("missing=biased rate=0.95", "rate=0.95", ("0.1 (low)", "0.9 (high)")),
        ("missing=biased missing.exact=true", "missing.exact=True", ("false", "type1", "type2")),
        ("missing=biased missing.low=0.95", "missing.low=0.95", ("below missing.high=0.9",)),
        ("-m threads=1,2", "threads=1,2", ("one value for all",)),
        ("-m backend=local,ray", "backend=local,ray", ("one value for all",)),
        ("-m rate=0.1,2", "rate=2.0", SHARE),
        ("-m missing=type1,foo", "missing=foo", tuple(choices("missing"))),
        ("-m --cfg job", "run -m --cfg", ("one of these at a time",)),
    ):
        check_refusal(refusal(capsys, folder, [*RUN, *words.split()]), start, offered)


@pytest.mark.parametrize("n_jobs", ["auto", "1"])
def test_a_gpu_that_is_not_there(capsys, folder, n_jobs):
    command = [*RUN, "device=cuda:99", f"n_jobs={n_jobs}"]
    assert refusal(capsys, folder, command).startswith("device=cuda:99: torch sees ")


@pytest.mark.parametrize("cluster", [["backend=ray", "backend.address=nowhere"], ["backend=slurm"]])
def test_a_gpu_that_a_cluster_does_not_grant(capsys, folder, cluster):
    sentence = refusal(capsys, folder, [*RUN, "device=cuda", *cluster])
    assert sentence.startswith("backend.gpus=0: device=cuda needs backend.gpus=1")


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_results_that_cannot_be_written(capsys, folder, place):
    (folder / "file").write_text("mine")
    assert refusal(capsys, folder, [*RUN, f"results_dir={place}"]).startswith("results_dir")
    assert (folder / "file").read_text() == "mine"


def test_data_that_cannot_be_had(capsys, folder, monkeypatch):
    class Unreachable:
        title = "nowhere"

        def address(self, path):
            return path

        def read(self, addresses):
            raise fetch.SourceError("no network")

    monkeypatch.setattr(fetch, "SOURCES", (Unreachable(),))
    monkeypatch.setenv("PAGNN_DATA", str(folder))
    sentence = refusal(capsys, folder, ["run", "data=cora"])
    assert sentence.startswith("data=cora: its files are not in ")
    assert "nowhere (no network)" in sentence
    assert "PAGNN_DATA" in sentence


def test_unknown_commands_and_groups(capsys, folder):
    sentence = refusal(capsys, folder, ["trian"])
    assert sentence == f"trian: no such command; choose one of {', '.join(COMMANDS)}."
    sentence = refusal(capsys, folder, ["list", "methods"])
    assert sentence == f"list methods: choose one of {', '.join(GROUPS)}, or none for all."
    assert refusal(capsys, folder, ["list", "data", "method"]) == "list: unrecognized arguments: method."


# -- The user's own method -----------------------------------------------------------------------

MINE = {
    "import torch\nclass Mine(\n": "method._target_=mine.Mine: cannot be imported (SyntaxError: ",
    "import torhc\n": "method._target_=mine.Mine: cannot be imported (No module named 'torhc').",
    "Mine = Nobody\n": "method._target_=mine.Mine: cannot be imported (NameError: name 'Nobody' is not defined).",
    "class Mine: ...\n": "method._target_=mine.Mine: is not a subclass of pagnn_bench.methods.Method.",
    "from pagnn_bench.methods.pagnn import PaGNN\nclass Mine(PaGNN):\n    def __init__(self, **keys):\n"
    "        raise ValueError('depth too large')\n": "method=mine: Mine cannot be made with these keys "
    "(ValueError: depth too large).",
}


@pytest.mark.parametrize(("code", "sentence"), MINE.items(), ids=range(len(MINE)))
def test_a_mistake_in_an_own_method_is_one_sentence(capsys, folder, monkeypatch, code, sentence):
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    (folder / "method").mkdir()
    (folder / "method/mine.yaml").write_text("name: mine\n_target_: mine.Mine\nhidden: 4\n")
    (folder / "mine.py").write_text(code)
    assert refusal(capsys, folder, [*RUN, "--config-dir", ".", "method=mine"]).startswith(sentence)


def test_a_method_file_that_names_no_class_or_is_no_yaml(capsys, folder):
    (folder / "method").mkdir()
    (folder / "method/mine.yaml").write_text("name: mine\n")
    sentence = refusal(capsys, folder, [*RUN, "--config-dir", ".", "method=mine"])
    assert sentence == "method=mine: its file names no class (_target_: module.Class)."
    (folder / "method/mine.yaml").write_text("name: [mine\n")
    sentence = refusal(capsys, folder, [*RUN, "--config-dir", ".", "method=mine"])
    assert sentence.startswith("--config-dir: a file is not YAML (while parsing a flow sequence in")
