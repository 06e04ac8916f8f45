"""Methods and datasets of other packages: found by their entry points, named where they are broken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hydra.core.config_store import ConfigStore

from pagnn_bench.cli import main
from pagnn_bench.config import plugins, variants
from pagnn_bench.config.catalogue import choices
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.sweep import compose_combinations
from pagnn_bench.config.variants import find_variants
from tests.cli.common import refusal

METHOD = """\
defaults:
  - base/two_layer@_here_
  - _self_
name: {name}
label: Ours
description: "one of ours"
_target_: ours.Method
value: 1e-3
"""
DATA = """\
name: ring
source: ours.RING
split: random
recommended:
  hidden: 8
  weight_decay: 0.5
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Puts a package, as pip leaves it, where Python finds it; afterwards nothing of it is left."""
    caches = (
        plugins.plug_ins,
        plugins.plugged_packages,
        variants._file,
        variants._packaged,
        variants._resolved,
    )
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(tmp_path)

    def write(entries: str, files: dict[str, str] | None = None, package: str = "ours") -> None:
        described = {"METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 3.1\n"}
        described["entry_points.txt"] = entries
        names = {f"{package}-3.1.dist-info/{name}": text for name, text in described.items()}
        for name, text in {**names, **(files or {})}.items():
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).write_text(text)
        for cached in caches:
            cached.cache_clear()

    yield write
    for cached in caches:
        cached.cache_clear()
    for group in plugins.ENTRY_POINTS:
        ConfigStore.instance().repo.pop(group, None)


def methods(**entries: str) -> str:
    return "\n".join(["[pagnn_bench.methods]", *(f"{name} = {value}" for name, value in entries.items()), ""])


def test_a_plug_in_is_a_choice_like_any_other(install, capsys):
    entries = methods(good="ours.conf") + "[pagnn_bench.data]\nring = ours\n"
    install(entries, {"ours/conf/good.yaml": METHOD.format(name="good"), "ours/ring.yaml": DATA})
    assert choices("method")["good"] == "one of ours"
    assert "ring" in choices("data")
    assert main(["run", "method=good", "data=ring", "--cfg", "job", "--resolve"]) == 0
    shown = capsys.readouterr()
    assert "\n  value: 0.001\n" in shown.out  # a number to Hydra, though YAML 1.1 thinks otherwise
    assert "\n  hidden: 8\n" in shown.out
    assert shown.err == ""
    [bad] = [refusal(capsys, Path("site"), ["run", "method=gooood"])]
    assert bad == f"method=gooood: choose one of {', '.join(choices('method'))}."


def test_its_file_says_what_its_defaults_are(install):
    entries = methods(good="ours") + "[pagnn_bench.data]\nring = ours\n"
    install(entries, {"ours/good.yaml": METHOD.format(name="good"), "ours/ring.yaml": DATA})
    words = ["method=good,pagnn_n", "method.dropout=0.5,0.2", "data=ring", "protocol=shared"]
    cells = [Cell.from_config(config) for config in compose_combinations(words, multirun=True)]
    cells.append(
        Cell.from_config(compose_combinations(["method=good", "data=ring", "method.value=0.002"])[0])
    )
    found = find_variants(cells)
    settings = [(cell.method["name"], found[cell.hash]["method"]) for cell in cells]
    # The most common setting is not the default: the file decides.
    assert settings == [
        *(("good", ""), ("good", "dropout=0.2"), ("pagnn_n", ""), ("pagnn_n", "dropout=0.2")),
        ("good", "value=0.002"),
    ]
    assert {found[cell.hash][group] for cell in cells for group in ("data", "protocol")} == {""}
    # What the package recommends for its dataset is read from its file, too, and not from the record.
    install(entries, {"ours/ring.yaml": DATA.replace("hidden: 8", "hidden: 4")})
    assert find_variants(cells)[cells[0].hash]["method"] == "hidden=8"


def test_nothing_is_imported_before_it_is_chosen(install, capsys):
    install(
        methods(good="ours.conf"),
        {
            "ours/conf/good.yaml": METHOD.format(name="good"),
            "ours/__init__.py": "raise OSError('half there')",
        },
    )
    assert main(["list", "method"]) == 0
    shown = capsys.readouterr()
    assert "good" in shown.out
    assert shown.err == ""
    sentence = refusal(capsys, Path("site"), ["run", "method=good", "data=synthetic"])
    assert sentence == "method._target_=ours.Method: cannot be imported (OSError: half there)."


@pytest.mark.parametrize(
    ("name", "value", "text", "reason"),
    [
        ("mf", "ours", METHOD.format(name="mf"), "pagnn-bench has a method of this name"),
        ("bad", "nowhere", None, "there is no package nowhere"),
        ("bad", "ours.conf", None, "ours.conf has no file bad.yaml"),
        ("bad", "..", None, "there is no package .."),
        ("bad", "ours", None, "ours has no file bad.yaml"),
        ("bad", "ours", "name: [bad", "site/ours/bad.yaml cannot be read (while parsing a flow sequence"),
        ("bad", "ours", "name: ${", "site/ours/bad.yaml cannot be read ("),
        ("bad", "ours", "- bad", "site/ours/bad.yaml has no key _target_"),
        ("bad", "ours", "name: bad", "site/ours/bad.yaml has no key _target_"),
        (
            *("bad", "ours", METHOD.format(name="pagnn_n")),
            "site/ours/bad.yaml calls it 'pagnn_n'; the key name must be bad",
        ),
    ],
)
def test_a_broken_plug_in_is_named_once_and_skipped(install, capsys, name, value, text, reason):
    files = {"ours/good.yaml": METHOD.format(name="good"), "ours/__init__.py": ""}
    before = choices("method")
    install(
        methods(**{name: value}, good="ours"), files | ({} if text is None else {f"ours/{name}.yaml": text})
    )
    assert main(["list"]) == 0
    shown = capsys.readouterr()
    warning = shown.err.replace(f"{Path.cwd()}{os.sep}", "")
    assert warning.startswith(f"warning: method {name} of package ours is skipped: {reason}")
    assert warning.endswith(".\n")
    assert warning.count("\n") == 1
    assert choices("method").keys() == before.keys() | {"good"}
    assert choices("method")["mf"] == before["mf"]


def test_of_two_packages_with_one_name_the_second_is_skipped(install, capsys):
    for package in ("ours", "theirs"):
        install(methods(good=package), {f"{package}/good.yaml": METHOD.format(name="good")}, package)
    assert main(["list", "method"]) == 0
    shown = capsys.readouterr()
    assert shown.out.count("  good ") == 1
    assert "is skipped: another package has a method of this name.\n" in shown.err


def test_completion_says_nothing_of_broken_ones(install, capfd, monkeypatch):
    install(methods(bad="nowhere", useful="ours"), {"ours/useful.yaml": METHOD.format(name="useful")})
    monkeypatch.setenv("COMP_LINE", "pagnn-bench run method=us")
    assert main(["-sc", "query=bash"]) == 0
    assert capfd.readouterr() == ("method=useful\n", "")


def test_versions_are_part_of_the_provenance(install):
    from pagnn_bench.records.provenance import collect_provenance

    install(methods(good="ours"), {"ours/good.yaml": METHOD.format(name="good")})
    assert collect_provenance()["packages"]["ours"] == "3.1"
