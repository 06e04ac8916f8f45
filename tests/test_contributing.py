"""CONTRIBUTING.md does what it says: its example is written to a folder and run there, command by command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
PACKAGE = re.search(r"^## Publish your method.*?(?=^## )", TEXT, re.DOTALL | re.MULTILINE)
MODULE = re.search(r"^## Your own torch module.*?(?=^## )", TEXT, re.DOTALL | re.MULTILINE)
SECTION = re.search(r"^## Add your own method.*?(?=^## )", TEXT, re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory) -> list[str]:
    assert SECTION is not None
    return printed_by(SECTION[0], tmp_path_factory.mktemp("mine"))


def printed_by(section: str, folder: Path, **variables: str) -> list[str]:
    """What the commands of a section print, in a folder that holds its files and nothing else.

    Args:
        section: its text.
        folder: where its files are written and its commands run.
        variables: environment variables of the commands.
    """
    blocks = BLOCK.findall(section)
    for language, content in blocks:
        if language in ("python", "yaml", "toml"):
            name = re.match(r"# (\S+)\n", content)
            assert name, "the first line of a block names its file"
            path = folder / name[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": search}
    environment.pop("PYTHONPATH", None)
    environment |= variables
    printed = []
    for command in [
        line for language, content in blocks if language == "sh" for line in content.splitlines()
    ]:
        done = subprocess.run(
            command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        printed.append(done.stdout)
    return printed


def accuracy(label: str, output: str) -> float:
    found = re.search(
        rf"^{label} on Synthetic, type1, rate 0\.5: test accuracy ([\d.]+) %", output, re.MULTILINE
    )
    assert found, output
    return float(found[1])


def test_the_example_passes_its_own_test(outputs):
    assert "1 passed" in outputs[0]


def test_the_example_is_listed_among_the_others(outputs):
    names = [line.split()[0] for line in outputs[1].splitlines()[1:]]
    assert {"mine", "mf"} <= set(names)


def test_the_example_trains_and_reaches_what_the_text_says(outputs):
    assert SECTION is not None
    assert accuracy("Shrunk mean", outputs[2]) == pytest.approx(accuracy("Shrunk mean", SECTION[0]), abs=0.5)


def test_the_example_is_compared_with_methods_of_the_package(outputs):
    assert "3 done already, 3 to train" in outputs[3]
    assert accuracy("Shrunk mean", outputs[3]) == accuracy("Shrunk mean", outputs[2])
    assert accuracy("MF", outputs[3]) > 50  # chance is a seventh


def test_the_module_trains_and_reaches_what_the_text_says(tmp_path):
    assert MODULE is not None
    own, other, behind = printed_by(MODULE[0], tmp_path)
    label = r"Module on Synthetic, type1, rate 0\.5 \(args\.scale=0\.1,module=gnn\.MyGNN\): test accuracy ([\d.]+) %"
    found, said = (re.search(label, text) for text in (own, MODULE[0]))
    assert found
    assert said
    assert float(found[1]) == pytest.approx(float(said[1]), abs=0.5)
    assert "module=torch_geometric.nn.GAT" in other
    assert "network=gnn.MyGNN" in behind


@pytest.mark.packaging
def test_a_published_package_is_chosen_trained_and_labelled(tmp_path):
    """``pip install .`` builds a real wheel; it goes into a folder on the path instead of this environment."""
    assert PACKAGE is not None
    installed = tmp_path / "installed"
    pip = {"TARGET": str(installed), "NO_DEPS": "1", "NO_INDEX": "1", "NO_BUILD_ISOLATION": "0"}
    variables = {f"PIP_{key}": value for key, value in pip.items()}
    folder = tmp_path / "source"
    folder.mkdir()
    _, listed, ran, tables = printed_by(PACKAGE[0], folder, PYTHONPATH=str(installed), **variables)
    assert (installed / "my_baselines/constant.yaml").is_file()
    assert re.search(r"^  constant +missing entries are one number, then GCN$", listed, re.MULTILINE)
    assert re.search(r"^  ring +nodes on a circle, in three classes$", listed, re.MULTILINE)
    assert "2 cells, 4 trials: 0 done already, 4 to train" in ran
    assert re.search(r"^Constant on Ring, type2, rate 0\.5: test accuracy [\d.]+ %", ran, re.MULTILINE)
    assert re.search(r"^\| Constant +\|", tables, re.MULTILINE)
    [record] = folder.glob("results/cells/ring-type2-0.5-constant-quick-*/mask0*.json")
    assert json.loads(record.read_text())["provenance"]["packages"]["my-baselines"] == "0.1"
