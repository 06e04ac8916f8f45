"""The configuration files: every choice composes, resolves and is accepted by the code that reads it."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import pytest
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from pagnn_bench.cli import main
from pagnn_bench.config.catalogue import GROUPS, choices
from pagnn_bench.config.identity import Cell
from pagnn_bench.engine.plan import Request, Settings
from pagnn_bench.methods import build_method
from pagnn_bench.missing import check_missing
from pagnn_bench.training.protocol import Protocol

CHOICES = [(group, name) for group in GROUPS for name in choices(group)]
NAMED_BY_CONTENT = {("data", "pyg")}  # a dataset of torch_geometric bears the name of the class


def composed(*overrides: str) -> dict[str, Any]:
    """What ``pagnn-bench run OVERRIDES`` resolves to."""
    with initialize_config_module("pagnn_bench.conf", version_base="1.3"):
        config = OmegaConf.to_container(
            compose("config", list(overrides)), resolve=True, throw_on_missing=True
        )
    assert isinstance(config, dict)
    return config


@pytest.mark.parametrize(("group", "name"), CHOICES)
def test_every_choice_composes_and_is_accepted(group, name):
    config = composed(f"{group}={name}")
    assert build_method(config["method"])
    assert Protocol.from_config(config["protocol"])
    assert Settings.from_config(config)
    assert Request.from_config(config).trials
    check_missing(config["missing"], config["rate"])


@pytest.mark.parametrize(("group", "name"), CHOICES)
def test_every_choice_says_what_it_is(group, name):
    chosen = composed(f"{group}={name}")[group]
    assert chosen["description"]
    assert "\n" not in chosen["description"]
    if (group, name) not in NAMED_BY_CONTENT:
        assert chosen["name"] == name


def test_an_experiment_decides_over_the_defaults_and_the_command_line_over_the_experiment():
    assert (composed("experiment=smoke")["masks"], composed("experiment=smoke")["seeds"]) == (1, 2)
    assert composed("experiment=smoke")["data"]["name"] == "synthetic"
    assert composed("experiment=smoke", "seeds=7")["seeds"] == 7
    assert composed("experiment=smoke", "data=cora")["data"]["name"] == "cora"


def test_the_paper_s_setting_is_the_default():
    """Section 4.1 of the paper, key by key."""
    config = composed()
    cell = Cell.from_config(config)
    assert cell.id.startswith("cora-type1-0.5-pagnn_n-paper-")
    assert (config["masks"], config["seeds"]) == (5, 20)
    assert (cell.method["hidden"], cell.method["dropout"]) == (16, 0.5)
    assert (cell.protocol["lr"], cell.protocol["patience"]) == (0.005, 100)
    assert composed("data=amaphoto")["method"]["hidden"] == 64


def test_help_names_every_key_and_its_default(capsys):
    assert main(["run", "--help"]) == 0
    listed = dict(re.findall(r"^  (\w+)=(\S+)  +\S", capsys.readouterr().out, re.MULTILINE))
    expected = {
        key: value["name"] if key in GROUPS and value else "null" if value is None else str(value).lower()
        for key, value in {"experiment": None, **composed()}.items()
    }
    assert listed == expected


def test_every_yaml_file_is_a_choice_or_part_of_one():
    """A file that nothing includes would be dead."""
    root = files("pagnn_bench.conf")
    parts = [file.name.removesuffix(".yaml") for file in root.joinpath("method", "base").iterdir()]
    text = "".join(file.read_text("utf-8") for file in root.joinpath("method").iterdir() if file.is_file())
    assert all(f"base/{part}@" in text for part in parts)


# PaGNN's authors' methods have the paper's setting, as under protocol=shared; a user's module has no authors.
OWN = {"pagnn_m", "pagnn_n", "pagcn"}
READ = {  # what protocol=paper reads of a block `published`, by the group that has the key
    "method": {"hidden", "dropout", "input_dropout", "layers"},
    "protocol": {
        *(
            "lr",
            "weight_decay",
            "decay",
            "patience",
            "max_epochs",
            "stopping",
            "init_gain",
            "feature_norm",
            "tuning",
        )
    },
}


@pytest.mark.parametrize("name", sorted(set(choices("method")) - OWN - {"module"}))
def test_every_rival_is_trained_as_published(name):
    """No key of the block is without effect, and each is what the configuration resolves to."""
    config = composed(f"method={name}")
    published = config["method"]["published"]
    assert published
    assert published.keys() <= READ["method"] | READ["protocol"] | {"extreme"}
    for group, keys in READ.items():
        for key in keys & published.keys():
            assert config[group][key] == published[key], key


@pytest.mark.parametrize(
    ("data", "rate"), [("cora", 0.01), ("citeseer", 0.01), ("amaphoto", 0.001), ("amacomp", 0.001)]
)
def test_the_gcn_behind_fillings_has_a_learning_rate_for_the_graph(data, rate):
    """Under protocol=paper only, and not for PaGNN."""
    for method in ("mf", "vae", "gain", "zero"):
        assert composed(f"method={method}", f"data={data}")["protocol"]["lr"] == rate
        assert composed(f"method={method}", f"data={data}", "protocol=shared")["protocol"]["lr"] == 0.005
    assert composed("method=pagnn_n", f"data={data}")["protocol"]["lr"] == 0.005


@pytest.mark.parametrize("name", sorted(set(choices("method")) - {"label_prop"}))
def test_extreme_has_one_setting_for_all(name):
    """Apart from the learning rate of FSD-CAP, whose authors have their own."""
    config = composed(f"method={name}", "protocol=extreme")
    own = {"fsdcap": {"lr": 0.01}}.get(name, {})
    expected = {"layers": 3, "hidden": 64, "dropout": 0.5, "input_dropout": "none"} | own
    found = {key: config["method"][key] for key in expected.keys() & config["method"].keys()}
    assert found == {key: expected[key] for key in found}
    assert "hidden" in found
    assert "dropout" in found or name == "goodie"  # which has none
    protocol = config["protocol"]
    assert (protocol["lr"], protocol["weight_decay"]) == (own.get("lr", 0.005), 0.0)
    assert (protocol["stopping"], protocol["patience"]) == ("val_acc", 200)


@pytest.mark.parametrize("name", sorted(OWN))
def test_pagnn_is_trained_alike_under_paper_and_shared(name):
    paper, shared = (
        Cell.from_config(composed(f"method={name}", f"protocol={p}")) for p in ("paper", "shared")
    )
    assert {**paper.identity, "protocol": None} == {**shared.identity, "protocol": None}
    assert {**paper.identity["protocol"], "name": ""} == {**shared.identity["protocol"], "name": ""}


def test_what_was_published_of_a_method_is_no_part_of_its_identity():
    cell = Cell.from_config(composed("method=fp"))
    assert "published" in cell.method
    assert "published" not in cell.identity["method"]
    assert "published" not in cell.identity["protocol"]
