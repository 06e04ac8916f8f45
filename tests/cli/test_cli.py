"""The front door: quick answers, the shown configuration, completion, clean exits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pagnn_bench import __version__
from pagnn_bench.cli import COMMANDS, main
from pagnn_bench.config.catalogue import GROUPS, PACKAGED, choices
from tests.cli.common import RUN, one_of, refusal
from tests.imports import answer_without

# -- Answers without training --------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [[], ["--help"], ["help"], ["--version"], ["list"], ["list", "method"]])
def test_what_needs_no_training_imports_nothing_heavy(arguments):
    answer = answer_without({"torch", "hydra", "omegaconf", "numpy", "pandas"}, arguments)
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


def test_list_shows_the_users_own_choices(capsys, folder):
    (folder / "method").mkdir()
    (folder / "method/mine.yaml").write_text("name: mine\ndescription: my own\n")
    (folder / "method/bare.yaml").write_text("")
    assert main(["list", "method", "--config-dir", "."]) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[1:]]
    assert [line[0] for line in lines] == sorted([*choices("method"), "mine", "bare"])
    assert ["mine", "my own"] in lines
    (folder / "method/mine.yaml").write_text("name: [mine\n")
    sentence = refusal(capsys, folder, ["list", "--config-dir", "."])
    assert sentence.startswith("--config-dir: method/mine.yaml is not YAML (while parsing a flow sequence in")


@pytest.mark.parametrize("command", [["list"], [*RUN, "method=mf"], ["run", "method=mf", "--cfg", "job"]])
def test_an_own_file_that_ours_would_hide_is_refused(capsys, folder, command):
    """Hydra prefers the packaged file, so a changed copy of the same name would silently have no effect."""
    (folder / "method").mkdir()
    packaged = (PACKAGED / "method/mf.yaml").read_text(encoding="utf-8")
    (folder / "method/mf.yaml").write_text(packaged.replace("label: MF", "label: My MF"), encoding="utf-8")
    sentence = refusal(capsys, folder, [*command, "--config-dir", "."])
    assert sentence == (
        "--config-dir .: method/mf.yaml has the name of a file of pagnn-bench, which would be used in its place; "
        "give it a name of its own."
    )
    (folder / "method/mf.yaml").write_text(packaged, encoding="utf-8")  # the same file does no harm
    assert main(["list", "--config-dir", "."]) == 0


# -- Hydra's own flags ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [["--cfg", "job"], ["--cfg", "job", "--resolve"]])
def test_the_configuration_is_shown_instead_of_run(capsys, folder, flags):
    assert main(["run", "method=zero", *flags, "rate=0.25"]) == 0  # overrides on both sides of a flag
    shown = capsys.readouterr()
    assert "rate: 0.25" in shown.out
    assert shown.err == ""
    assert list(folder.iterdir()) == []


def test_the_origin_of_the_configuration_is_shown_once(folder):
    """In a separate process, since Hydra leaves a log handler behind that outlives the captured output."""
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
    "pagnn-bench run missing=type": {"missing=type1", "missing=type2"},
    "pagnn-bench run -m data=cora protocol=q": {"protocol=quick"},
    "pagnn-bench run method=zero protocol.l": {"protocol.lr="},
    "/some/where/pagnn-bench run missing=b": {"missing=biased"},
    "pagnn-bench run rate==1 x": set(),
}


@pytest.mark.parametrize(("line", "expected"), COMPLETIONS.items())
def test_completion(capsys, monkeypatch, line, expected):
    """As Hydra's bash script requests it."""
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


# -- The way out ---------------------------------------------------------------------------------------------


def test_exit_code_and_sentence_of_the_installed_command(folder):
    command = [Path(sys.executable).with_name("pagnn-bench"), "run", "method=foo"]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == f"pagnn-bench: method=foo: {one_of('method')}\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_output_onto_a_full_disk(folder):
    command = [sys.executable, "-m", "pagnn_bench", "list"]
    with open("/dev/full", "w") as full:
        answer = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert answer.returncode == 1
    assert answer.stderr == "pagnn-bench: the output: No space left on device.\n"


def test_a_reader_that_has_seen_enough(folder):
    command = [sys.executable, "-m", "pagnn_bench", "list"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 1
