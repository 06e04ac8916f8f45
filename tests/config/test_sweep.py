"""Combinations put together from parts are those that Hydra composes one by one."""

from __future__ import annotations

import itertools

import pytest
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from pagnn_bench.config import sweep as combinations
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.sweep import compose_combinations


def one_by_one(*axes: list[str], folder: str | None = None) -> list[dict]:
    """The straightforward way: every combination composed by Hydra, whole."""
    extra = [f"hydra.searchpath=['file://{folder}']"] if folder else []
    with initialize_config_module("pagnn_bench.conf", version_base="1.3"):
        return [
            OmegaConf.to_container(compose("config", [*extra, *words]), resolve=True)
            for words in itertools.product(*axes)
        ]


@pytest.mark.parametrize(
    ("words", "axes"),
    [
        (["rate=0.1,0.9", "method=mf,gain"], [["rate=0.1", "rate=0.9"], ["method=mf", "method=gain"]]),
        (
            ["method=pagnn_m,sat", "data=cora,amaphoto", "protocol=paper,literal"],
            [
                ["method=pagnn_m", "method=sat"],
                ["data=cora", "data=amaphoto"],
                ["protocol=paper", "protocol=literal"],
            ],
        ),
        (
            ["data=cora,citeseer", "method.hidden=8,32", "protocol.lr=0.1"],
            [["data=cora", "data=citeseer"], ["method.hidden=8", "method.hidden=32"], ["protocol.lr=0.1"]],
        ),
        (["method.hidden=range(2,8,2)"], [["method.hidden=2", "method.hidden=4", "method.hidden=6"]]),
        (["seeds=choice(3,[4,5])", "masks=[0,2]"], [["seeds=3", "seeds=[4,5]"], ["masks=[0,2]"]]),
        (
            ["+method.mine=1,2", "protocol.lr='${rate}'"],
            [["+method.mine=1", "+method.mine=2"], ["protocol.lr=${rate}"]],
        ),
        (["~backend", "rate=0.2,0.3"], [["~backend"], ["rate=0.2", "rate=0.3"]]),
        (
            ["method=glob(pagnn_*)", "missing=type1,type2"],
            [["method=pagnn_m", "method=pagnn_n"], ["missing=type1", "missing=type2"]],
        ),
    ],
)  # fmt: skip
def test_combinations_are_what_hydra_composes(words, axes):
    assert compose_combinations(words, multirun=True) == one_by_one(*axes)


def test_an_experiment_s_axes_and_those_of_the_command_line():
    ours = compose_combinations(["experiment=table2", "rate=0.5", "data=cora,citeseer"])
    methods = ["mf", "vae", "gain", "sat", "gcnmf", "pagnn_m", "pagnn_n"]
    axes = [["data=cora", "data=citeseer"], ["rate=0.5"], [f"method={method}" for method in methods]]
    assert ours == one_by_one(["experiment=table2"], *axes)


def test_several_experiments_are_each_with_its_own_axes():
    both = compose_combinations(["experiment=table2,table3", "data=cora", "rate=0.1"], multirun=True)
    alone = [
        compose_combinations([f"experiment={name}", "data=cora", "rate=0.1"]) for name in ("table2", "table3")
    ]
    assert [len(configs) for configs in alone] == [7, 6]
    assert both == alone[0] + alone[1]


def test_no_experiment_written_out():
    assert compose_combinations(["experiment=null"]) == compose_combinations([])


@pytest.mark.parametrize(("key", "usual"), [("protocol.weight_decay", 0.02), ("protocol.lr", 0.005)])
def test_whole_numbers_for_keys_that_are_not_are_the_same_setting(key, usual):
    group, _, name = key.partition(".")
    whole, exact = compose_combinations([f"{key}=1"]), compose_combinations([f"{key}=1.0"])
    assert whole == exact
    assert isinstance(whole[0][group][name], float)
    assert compose_combinations([])[0][group][name] == usual


def test_and_the_other_way_round():
    words = ["method=gain", "data=synthetic"]
    whole = compose_combinations([*words, "method.alpha=50", "data.avg_degree=5"])
    assert compose_combinations([*words, "method.alpha=50.0", "data.avg_degree=5.0"]) == whole


def test_choices_that_reach_beyond_their_group_are_composed_whole(tmp_path):
    (tmp_path / "method").mkdir()
    (tmp_path / "method/mine.yaml").write_text(
        "# @package _global_\ndefaults: [/method/pagnn_n@method, _self_]\nmethod: {name: mine}\nextra: 1\n"
    )
    words = ["method=pagnn_m,mine", "data=cora,amaphoto", "protocol=paper,literal", "rate=0.1,0.3"]
    axes = [
        [f"{key}={value}" for value in values.split(",")]
        for key, _, values in (w.partition("=") for w in words)
    ]
    ours = compose_combinations(words, multirun=True, folder=str(tmp_path))
    assert ours == one_by_one(*axes, folder=str(tmp_path))
    assert [config.get("extra") for config in ours] == [None] * 8 + [1] * 8


def test_choices_are_composed_once(monkeypatch):
    asked = []
    monkeypatch.setattr(
        combinations, "compose", lambda *args, **kwargs: asked.append(args) or compose(*args, **kwargs)
    )
    configs = compose_combinations(["experiment=table2"])
    assert len(configs) == 4 * 5 * 7
    # The experiment, the first combination, other datasets and methods; no rate.
    assert len(asked) == 1 + 1 + 3 + 6


def test_a_single_configuration_is_composed_once(monkeypatch):
    asked = []
    monkeypatch.setattr(
        combinations, "compose", lambda *args, **kwargs: asked.append(args) or compose(*args, **kwargs)
    )
    [config] = compose_combinations(["method=gain", "method.hidden=3", "rate=0.2"])
    assert [config] == one_by_one(["method=gain"], ["method.hidden=3"], ["rate=0.2"])
    assert len(asked) == 1


def test_a_key_that_only_the_swept_methods_have():
    ours = compose_combinations(["method=vae,gain", "method.per_seed=true"], multirun=True)
    assert ours == one_by_one(["method=vae", "method=gain"], ["method.per_seed=true"])
    with pytest.raises(RequestError, match=r"method\.per_seed: there is no such key"):
        compose_combinations(["method=vae,mf", "method.per_seed=true"], multirun=True)


def test_a_value_that_a_file_leaves_open_is_asked_for(tmp_path):
    file = tmp_path / "method" / "mine.yaml"
    file.parent.mkdir()
    file.write_text("name: mine\n_target_: mine.Mine\nstrength: ???\n")
    with pytest.raises(
        RequestError, match=r"method\.strength: there is no default; give method\.strength=VALUE\."
    ):
        compose_combinations(["method=mine"], folder=str(tmp_path))
    [config] = compose_combinations(["method=mine", "method.strength=2"], folder=str(tmp_path))
    assert config["method"]["strength"] == 2


def test_a_folder_with_an_apostrophe_in_its_name(tmp_path):
    file = tmp_path / "it's, [x]" / "method" / "mine.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("name: mine\n_target_: mine.Mine\n")
    [config] = compose_combinations(["method=mine"], folder=str(file.parent.parent))
    assert config["method"]["name"] == "mine"
