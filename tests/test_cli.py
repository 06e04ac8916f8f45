"""The front door: answers at once, completes, and says in one sentence what is wrong with a request."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pagnn_bench import __version__
from pagnn_bench.catalogue import GROUPS, choices
from pagnn_bench.cli import COMMANDS, main
from pagnn_bench.data import fetch

# In front of the wrong word: a request that would be right and quick without it.
RUN = ["run", "data=synthetic", "protocol=quick", "masks=1", "seeds=1", "device=cpu"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- Answers without training --------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [[], ["--help"], ["help"], ["--version"], ["list"], ["list", "method"]])
def test_what_needs_no_training_imports_nothing_heavy(arguments):
    code = (
        "import sys; from pagnn_bench.cli import main; code = main(sys.argv[1:])\n"
        "assert not {'torch', 'hydra', 'omegaconf', 'numpy', 'pandas'} & set(sys.modules)\n"
        "sys.exit(code)"
    )
    answer = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.strip()


def test_help_names_every_command(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"pagnn-bench {command} " in text for command in COMMANDS)
    assert max(map(len, text.splitlines())) <= 110


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pagnn-bench {__version__}\n"


def test_list_shows_every_choice_with_its_description(capsys):
    assert main(["list"]) == 0
    everything = capsys.readouterr().out
    assert main(["list", "missing"]) == 0
    one_group = capsys.readouterr().out
    assert one_group in everything
    assert all(line in everything for group in GROUPS for line in choices(group).values())
    assert one_group.splitlines()[0] == "missing="


# -- Hydra's own flags ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [["--cfg", "job"], ["--cfg", "job", "--resolve"]])
def test_the_configuration_is_shown_instead_of_run(capsys, folder, flags):
    assert main(["run", "method=zero", *flags, "rate=0.25"]) == 0  # overrides on both sides of a flag
    shown = capsys.readouterr()
    assert "rate: 0.25" in shown.out
    assert shown.err == ""
    assert list(folder.iterdir()) == []


def test_the_origin_of_the_configuration_is_shown_once(folder):
    """In a process of its own, since Hydra leaves a log handler behind that outlives the captured output."""
    command = [Path(sys.executable).with_name("pagnn-bench"), "run", "method=zero", "--info", "defaults"]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.count("Defaults List") == 1
    assert "| method/zero " in answer.stdout
    assert list(folder.iterdir()) == []


def test_resolved_configuration_has_no_interpolation(capsys):
    assert main(["run", "--cfg", "job", "--resolve"]) == 0
    assert "${" not in capsys.readouterr().out


def test_the_command_line_leaves_the_process_as_it_was(monkeypatch):
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    before = list(sys.argv)
    assert main(["run", "--cfg", "job"]) == 0
    assert (sys.argv, os.environ["HYDRA_FULL_ERROR"]) == (before, "0")


# -- Shell completion ----------------------------------------------------------------------------------------

COMPLETIONS = {
    "pagnn-bench ": set(COMMANDS),
    "pagnn-bench r": set(COMMANDS),
    "pagnn-bench list ": set(GROUPS),
    "pagnn-bench run miss": {"missing=", "missing."},
    "pagnn-bench run missing=": {"missing=biased", "missing=type1", "missing=type2"},
    "pagnn-bench run -m data=cora protocol=q": {"protocol=quick"},
    "pagnn-bench run method=zero protocol.l": {"protocol.lr="},
    "/some/where/pagnn-bench run missing=b": {"missing=biased"},
    "pagnn-bench run rate==1 x": set(),
}


@pytest.mark.parametrize(("line", "expected"), COMPLETIONS.items())
def test_completion(capsys, monkeypatch, line, expected):
    """As Hydra's script for bash asks for it."""
    monkeypatch.setenv("COMP_LINE", line)
    monkeypatch.setenv("COMP_POINT", str(len(line)))
    assert main(["-sc", "query=bash"]) == 0
    answer = capsys.readouterr()
    assert set(answer.out.split()) == expected
    assert answer.err == ""


def test_completion_in_bash():
    script = """
    eval "$(pagnn-bench run -sc install=bash)"
    complete -p pagnn-bench
    COMP_LINE="pagnn-bench run protocol=q" COMP_POINT=26 COMP_CWORD=2
    hydra_bash_completion
    echo "${COMPREPLY[@]}"
    """
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = ["bash", "--norc", "-c", script]
    answer = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert "-F hydra_bash_completion pagnn-bench" in answer.stdout, answer.stderr
    assert answer.stdout.splitlines()[-1] == "protocol=quick"


# -- Wrong requests ------------------------------------------------------------------------------------------


def refusal(capsys: pytest.CaptureFixture[str], folder: Path, arguments: list[str]) -> str:
    """The sentence with which a wrong request is refused; checks that it is one, and that nothing was created."""
    before = sorted(folder.rglob("*"))
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("pagnn-bench: ")
    assert error.count("\n") == 1
    assert error.endswith("\n")
    assert sorted(folder.rglob("*")) == before
    return error.removeprefix("pagnn-bench: ").strip()


def one_of(group: str) -> str:
    return f"choose one of {', '.join(choices(group))}."


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
    "rate=0.1,0.2": "rate=0.1,0.2: add -m to run each of these, or write a list as rate=[0.1,0.2].",
    "rate==1": "rate==1: cannot be read as KEY=VALUE.",
    "rate": "rate: cannot be read as KEY=VALUE.",
    "masks=0": f"masks=0: {INDICES}",
    "masks=x": f"masks=x: {INDICES}",
    "seeds=-1": f"seeds=-1: {INDICES}",
    "seeds=[0,0]": "seeds=[0, 0]: an index is named twice.",
    "stack=0": "stack=0: give a whole number of at least 1.",
    "threads=0": "threads=0: give a whole number of at least 1, or null.",
    "force=maybe": "force=maybe: choose true or false.",
    "results_dir=null": "results_dir=None: give the name of a folder.",
    "device=tpu": f"device=tpu: {DEVICES}",
    "device=1": f"device=1: {DEVICES}",
    "method.dropout=1": "method.dropout=1: give a rate from 0 up to, but not including, 1.",
    "method.hidden=0": "method.hidden=0: give a whole number of at least 1.",
    "method.hidden=${foo}": "method.hidden: Interpolation key 'foo' not found.",
    "protocol.stopping=never": "protocol.stopping=never: choose one of val_loss, either.",
    "protocol.feature_norm=x": "protocol.feature_norm=x: choose one of none, row.",
    "protocol.lr=-1": "protocol.lr=-1: give a number above 0.",
    "~method": "method: choose one of `pagnn-bench list method`.",
    "--foo": "run: unrecognized arguments: --foo; `pagnn-bench run --help` shows the flags.",
    "--resolve": "run --resolve: goes with --cfg only.",
}


@pytest.mark.parametrize(("word", "sentence"), WRONG.items(), ids=WRONG)
def test_a_wrong_word_is_named_with_the_choices(capsys, folder, word, sentence):
    assert refusal(capsys, folder, [*RUN, word]) == sentence


def test_wrong_combinations(capsys, folder):
    sentence = refusal(capsys, folder, [*RUN, "missing=biased", "rate=0.95"])
    assert sentence == "rate=0.95: missing=biased takes rates from 0.1 (low) to 0.9 (high)."
    sentence = refusal(capsys, folder, ["run", "-m", "--cfg", "job"])
    assert sentence == "run -m --cfg: one of these at a time."
    sentence = refusal(capsys, folder, [*RUN, "-m", "threads=1,2"])
    assert sentence == "threads=1,2: one value for all combinations of a command."
    assert refusal(capsys, folder, [*RUN, "-m", "rate=0.1,2"]) == f"rate=2: {RATE}"
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
    assert sentence == f"list methods: name one group or none: {', '.join(GROUPS)}."


def test_exit_code_and_sentence_of_the_installed_command(folder):
    command = [Path(sys.executable).with_name("pagnn-bench"), "run", "method=foo"]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == f"pagnn-bench: method=foo: {one_of('method')}\n"


def test_a_reader_that_has_seen_enough(folder):
    command = [sys.executable, "-m", "pagnn_bench.cli", "list"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 1
