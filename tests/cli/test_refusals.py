"""Wrong requests: each is refused in one sentence that names what is wrong with it, before anything is written."""

from __future__ import annotations

import os
import sys

import pytest
import yaml

from pagnn_bench.cli import COMMANDS, main
from pagnn_bench.config.catalogue import GROUPS, PACKAGED
from pagnn_bench.data import fetch
from pagnn_bench.engine.backends.options import check_options
from tests.cli.common import RUN, one_of, refusal

INDICES = "give a count of at least 1 or a list of indices such as [0,1,2]."
RATE = "the missing rate is a number from 0 up to, but not including, 1."
NO_KEY = "there is no such key; `pagnn-bench run --cfg job` shows all keys."
DEVICES = "choose auto, cpu, cuda or cuda:0, cuda:1, ..."

WRONG = {
    "method=foo": f"method=foo: {one_of('method')}",
    "method=": f"method=: {one_of('method')}",
    "data=foo": f"data=foo: {one_of('data')}",
    "missing=foo": f"missing=foo: {one_of('missing')}",
    "protocol=foo": f"protocol=foo: {one_of('protocol')}",
    "experiment=foo": f"experiment=foo: {one_of('experiment')}",
    "backend=foo": f"backend=foo: {one_of('backend')}",
    "foo=1": f"foo: {NO_KEY}",
    "method.foo=1": f"method.foo: {NO_KEY}",
    "rate=1.0": f"rate=1.0: {RATE}",
    "rate=-0.1": f"rate=-0.1: {RATE}",
    "rate=abc": f"rate=abc: {RATE}",
    "rate=nan": f"rate=nan: {RATE}",
    "rate=0.1,0.2": "rate=0.1,0.2: add -m to run each of these.",
    "method=mf,zero": "method=mf,zero: add -m to run each of these.",
    "seeds=0,1": "seeds=0,1: add -m to run each of these, or write a list as seeds=[0,1].",
    "method=[mf,zero]": f"method=[mf,zero]: {one_of('method')[:-1]}; several with -m method=mf,zero.",
    "missing=1": f"missing=1: {one_of('missing')}",
    "data=null": f"data=null: {one_of('data')}",
    "protocol=true": f"protocol=true: {one_of('protocol')}",
    "rate==1": "rate==1: cannot be read as KEY=VALUE.",
    "rate": "rate: cannot be read as KEY=VALUE.",
    "data.path=~/a": "data.path=~/a: cannot be read as KEY=VALUE; in quotes it can: 'data.path=\"~/a\"'.",
    "masks=0": f"masks=0: {INDICES}",
    "masks=x": f"masks=x: {INDICES}",
    "seeds=-1": f"seeds=-1: {INDICES}",
    "seeds=[0,0]": "seeds=[0, 0]: an index is named twice.",
    "stack=0": "stack=0: give a whole number of at least 1.",
    "threads=0": "threads=0: give a whole number from 1 to 1024, or null.",
    "force=maybe": "force=maybe: choose true or false.",
    "results_dir=null": "results_dir=None: give the name of a folder.",
    "precision=half": "precision=half: choose one of float32, bfloat16.",
    "device=tpu": f"device=tpu: {DEVICES}",
    "device=1": f"device=1: {DEVICES}",
    "method.dropout=1": "method.dropout=1.0: give a share from 0 up to, but not including, 1.",
    "method.hidden=0": "method.hidden=0: give a whole number of at least 1.",
    "method.hidden=true": "method.hidden=True: give a whole number of at least 1.",
    "method.bias=no": "method.bias=no: choose true or false.",
    "method.mask_update=off": "method.mask_update=off: choose true or false.",
    "method.name=a/b": "method.name=a/b: use letters, digits, dots, dashes and underscores only.",
    "protocol.name=null": "protocol.name=None: use letters, digits, dots, dashes and underscores only.",
    "+protocol.wieght_decay=1": "protocol.wieght_decay: a protocol has no such key.",
    "+missing.low=0.1": "missing.low: pattern rows has no such key.",
    "~protocol.lr": "protocol.lr: a protocol needs this key.",
    "~missing.exact": "missing.exact: pattern rows needs this key.",
    "missing.pattern=foo": "missing.pattern=foo: choose one of rows, cells, biased.",
    "+data.num_vall=9": "data.num_vall: source synthetic has no such key.",
    "~data.num_val": "data.num_val: source synthetic needs this key.",
    "method.hidden=${foo}": "method.hidden: Interpolation key 'foo' not found.",
    "protocol.stopping=never": "protocol.stopping=never: choose one of val_loss, either.",
    "protocol.feature_norm=x": "protocol.feature_norm=x: choose one of none, row.",
    "protocol.lr=-1": "protocol.lr=-1.0: give a number above 0.",
    "~method": "method: choose one of `pagnn-bench list method`, or give your file a `name:`.",
    "~rate": "rate: a run needs it; leave out ~rate.",
    "~protocol": "protocol: choose one of `pagnn-bench list protocol`, or give your file a `name:`.",
    "~backend": "backend: a run needs it; leave out ~backend.",
    "+seed=3": "seed=3: a run has no such key.",
    "threads=100000": "threads=100000: give a whole number from 1 to 1024, or null.",
    "protocol.lr=true": "protocol.lr=True: give a number above 0.",
    "protocol.stopping=[a]": "protocol.stopping=['a']: choose one of val_loss, either.",
    "rate=0.99999999999": f"rate=0.99999999999: {RATE}",
    "data.num_nodes=1000000000": "data.num_nodes=1000000000: give a whole number from 14 to 1e+08.",
    "+backend.foo=1": "backend.foo=1: local has no such key.",
    "backend.name=ray": "backend.address: ray needs it; choose with backend=ray, which brings all keys.",
    "backend.name=x": "backend=x: choose one of local, dask, ray, slurm.",
    "--foo": "run: unrecognized arguments: --foo; `pagnn-bench run --help` shows the flags.",
    "--resolve": "run --resolve: goes with --cfg only.",
}


@pytest.mark.parametrize(("word", "sentence"), WRONG.items(), ids=WRONG)
def test_a_wrong_word_is_named_with_the_choices(capsys, folder, word, sentence):
    assert refusal(capsys, folder, [*RUN, word]) == sentence


TUNED = {
    "protocol.tuning=3": "protocol.tuning=3: give its keys, such as protocol.tuning.budget=20.",
    "protocol.tuning.space=3": "protocol.tuning.space=3: give lists of values by key.",
    "protocol.tuning.own=3": "protocol.tuning.own=3: give lists of values by key.",
    "protocol.tuning.own.gcnmf=3": "protocol.tuning.own.gcnmf=3: give lists of values by key.",
    "~protocol.tuning.space": "protocol.tuning.space=None: give lists of values by key.",
    "protocol.tuning.space={protocol.lr: 1}": "protocol.tuning: protocol.lr=1: give a list of values.",
    "protocol.tuning.budget=0": "protocol.tuning.budget=0: give a whole number of at least 1.",
    "rate=abc": f"rate=abc: {RATE}",
    "~rate": "rate: a run needs it; leave out ~rate.",
    "seeds=abc": "seeds=abc: give a count of at least 1 or a list of indices such as [0,1,2].",
    "protocol.name=a/b": "protocol.name=a/b: use letters, digits, dots, dashes and underscores only.",
}


BACKENDS = {
    "slurm batches_per_job=0": "give a whole number of at least 1.",
    "slurm array_size=-5": "give a whole number of at least 1.",
    "slurm minutes=abc": "give a whole number of at least 1.",
    "slurm more=null": "give options of sbatch, such as {account: mine}.",
    "slurm cluster=foo": "choose slurm or local.",
    "slurm memory_gb=0": "give a number above 0.",
    "dask address=5": "give a text, or null.",
    "dask timeout=abc": "give a number above 0.",
    "dask shared_storage=1": "choose true or false.",
    "ray gpus=-1": "give a number not below 0.",
    "ray retries=0.5": "give a whole number of at least 0.",
}


@pytest.mark.parametrize(("words", "sentence"), BACKENDS.items(), ids=BACKENDS)
def test_a_wrong_option_of_a_backend_is_refused_before_it_is_reached(capsys, folder, words, sentence):
    name, _, option = words.partition(" ")
    told = refusal(capsys, folder, [*RUN, f"backend={name}", f"backend.{option}", "dry_run=true"])
    key, _, value = option.partition("=")
    assert told == f"backend.{key}={'None' if value == 'null' else value}: {sentence}"


def test_every_option_of_a_backend_is_known():
    for file in (PACKAGED / "backend").glob("*.yaml"):
        check_options(yaml.safe_load(file.read_text(encoding="utf-8")))


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


@pytest.mark.parametrize(("word", "sentence"), TUNED.items(), ids=TUNED)
def test_a_search_that_makes_no_sense_is_refused(capsys, folder, word, sentence):
    assert refusal(capsys, folder, [*RUN, "protocol=tuned", word]) == sentence


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
    sentence = refusal(capsys, folder, [*RUN, "missing=biased", "rate=0.95"])
    assert sentence == "rate=0.95: missing=biased takes rates from 0.1 (low) to 0.9 (high)."
    sentence = refusal(capsys, folder, ["run", "-m", "--cfg", "job"])
    assert sentence == "run -m --cfg: one of these at a time."
    sentence = refusal(capsys, folder, [*RUN, "method=gcnmf", "precision=bfloat16"])
    assert sentence == "method=gcnmf has no form in precision=bfloat16."
    sentence = refusal(capsys, folder, [*RUN, "-m", "threads=1,2"])
    assert sentence == "threads=1,2: one value for all combinations of a command."
    sentence = refusal(capsys, folder, [*RUN, "-m", "backend=local,ray"])
    assert sentence == "backend=local,ray: one value for all combinations of a command."
    assert refusal(capsys, folder, [*RUN, "-m", "rate=0.1,2"]) == f"rate=2.0: {RATE}"
    assert refusal(capsys, folder, [*RUN, "-m", "missing=type1,foo"]) == f"missing=foo: {one_of('missing')}"


def test_a_gpu_that_is_not_there(capsys, folder):
    assert refusal(capsys, folder, [*RUN, "device=cuda:99"]).startswith("device=cuda:99: torch sees ")


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


# -- A method of one's own, on its way -----------------------------------------------------------------------

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
def test_a_slip_in_a_method_of_ones_own_is_told_in_a_sentence(capsys, folder, monkeypatch, code, sentence):
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
