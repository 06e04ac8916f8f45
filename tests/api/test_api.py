"""The Python API: the same trials as from a shell, errors as exceptions, no global state left behind."""

from __future__ import annotations

import inspect
import signal
import subprocess
import sys
import threading
from pathlib import Path

import hydra
import numpy as np
import pytest
import torch
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hypothesis import given
from hypothesis import strategies as st

import pagnn_bench
from pagnn_bench import RequestError, Unfinished, apply, compare, draw_mask, load_graph, run
from pagnn_bench.api.words import configurations, text_of
from pagnn_bench.cli import main
from pagnn_bench.config.identity import Cell
from pagnn_bench.engine.prepare import hide_mask
from pagnn_bench.records.store import Store
from tests.methods.test_all_methods import CPU

SHORT = {"data": "synthetic", "protocol": "quick", "device": "cpu", "masks": 1, "seeds": 2}


def test_importing_the_package_is_quick():
    heavy = "{'torch', 'hydra', 'pandas', 'numpy', 'omegaconf', 'yaml'} & set(sys.modules)"
    program = f"import sys, pagnn_bench; print({heavy} or 'light', 'run' in dir(pagnn_bench))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout == "light True\n"
    with pytest.raises(AttributeError, match="no attribute 'walk'"):
        pagnn_bench.walk  # noqa: B018


def test_everything_is_typed_and_documented():
    assert Path(pagnn_bench.__file__).with_name("py.typed").is_file()
    for name in set(pagnn_bench.__all__) - {"__version__"}:
        thing = getattr(pagnn_bench, name)
        assert inspect.getdoc(thing)
        if inspect.isfunction(thing):
            assert all(p.annotation is not p.empty for p in inspect.signature(thing).parameters.values())


def test_a_run_is_that_of_the_command_line(capsys):
    frame = run("protocol.lr=0.02", method=["mf", "pagnn_n"], rate=[0.1, 0.5], **SHORT)
    assert "4 cells, 8 trials: 0 done already, 8 to train" in capsys.readouterr().out
    assert len(frame) == 8
    assert frame.groupby(["method", "rate"]).size().tolist() == [2] * 4
    assert set(frame["protocol"]) == {"quick[lr=0.02]"}
    words = ["method=mf,pagnn_n", "rate=0.1,0.5", "protocol.lr=0.02", *(f"{k}={v}" for k, v in SHORT.items())]
    assert main(["run", "-m", *words]) == 0
    assert "all done already" in capsys.readouterr().out
    recorded = [
        t.record["test_acc"]
        for cell in Store("results").cells()
        for t in Store("results").load(cell).values()
    ]
    assert sorted(recorded) == sorted(frame["test_acc"])
    assert len(run("protocol.lr=0.02", method="mf", rate=0.1, progress=False, **SHORT)) == 2
    assert capsys.readouterr() == ("", "")


def test_a_comparison_ranks_the_trials_of_run(capsys):
    """Running after comparing trains nothing twice; a dry run has nothing to rank."""
    comparison = compare(method=["mf", "zero"], rate=0.5, progress=False, **{**SHORT, "masks": 2})
    assert capsys.readouterr().out == ""
    frame = comparison.frame()
    assert set(frame["method"]) == {"mf", "zero"}
    assert comparison.sentence
    trials = run(method=["mf", "zero"], rate=0.5, **{**SHORT, "masks": 2})
    assert "all done already" in capsys.readouterr().out
    means = trials.groupby("method").test_acc.mean() * 100
    assert dict(zip(frame["method"], frame["mean"])) == pytest.approx(means.to_dict())
    with pytest.raises(RequestError, match="leave out dry_run and backend"):
        compare(method="mf", dry_run=True, **SHORT)


def test_two_underscores_stand_for_the_dot():
    [config] = configurations([], {"method": "mf", "protocol__lr": 0.03, "method__hidden": np.int64(8)})
    assert (config["protocol"]["lr"], config["method"]["hidden"]) == (0.03, 8)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="$"), max_size=12))
def test_any_text_arrives_as_it_is(text):
    from hydra.core.override_parser.overrides_parser import OverridesParser

    [override] = OverridesParser.create().parse_overrides([f"data.path={text_of(text)}"])
    assert override.value() == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1e-5, "1e-05"),
        ([0, 2], "[0,2]"),
        (np.arange(3), "[0,1,2]"),
        ({"name": "Cora_ML"}, "{name:Cora_ML}"),
        (Path("a b"), "'a b'"),
    ],
)
def test_values_in_the_grammar_of_overrides(value, text):
    assert text_of(value) == text


def test_wrong_requests_are_exceptions():
    wrong = {
        "method=nothing: choose one of": {"method": "nothing"},
        "rate=2.0: the missing rate": {"rate": 2.0},
        "methd: there is no such key": {"methd": "mf"},
        r"method=\[\]: give at least one value": {"method": []},
        "data.path: data=custom needs the path": {"data": "custom"},
    }
    for sentence, keys in wrong.items():
        with pytest.raises(RequestError, match=rf"^{sentence}"):
            run(**{**SHORT, **keys})  # type: ignore[arg-type]
    graph = load_graph("synthetic", num_nodes=100, num_val=20, train_per_class=5)
    for value in (graph, torch.nn.Linear):  # the whole of a graph would be pages
        with pytest.raises(RequestError, match=r"give a string, .* a graph by its file\.$") as caught:
            run(method=value, **SHORT)  # type: ignore[arg-type]
        assert len(str(caught.value)) < 200
        assert "\n" not in str(caught.value)
    with pytest.raises(RequestError, match=r"^graph: give a graph from load_graph, not a value of type str"):
        draw_mask("cora")  # type: ignore[arg-type]
    with pytest.raises(RequestError, match=r"^best=0: give a whole number"):
        apply(best=0)
    assert list(Path().iterdir()) == []


def test_nothing_of_hydra_is_left_behind():
    before = HydraConfig.instance().cfg
    configurations([], {"method": "mf", "seeds": 77})
    assert not GlobalHydra.instance().is_initialized()
    assert HydraConfig.instance().cfg == before
    with hydra.initialize_config_module(
        "pagnn_bench.conf", version_base="1.2"
    ):  # a program that uses Hydra itself
        before = hydra.compose("config", ["method=fp"])
        configurations([], {"method": "mf"})
        assert hydra.compose("config", ["method=fp"]) == before
        assert hydra.core.global_hydra.GlobalHydra.instance().is_initialized()


def test_a_training_that_breaks_off_is_an_exception():
    Path("own_broken.py").write_text(
        "import torch\n"
        "class Broken(torch.nn.Linear):\n"
        "    def __init__(self, in_channels, out_channels): super().__init__(in_channels, out_channels)\n"
        "    def forward(self, x): raise ValueError('no idea')\n"
    )
    with pytest.raises(Unfinished, match="no idea"):
        run(method="module", method__module="own_broken.Broken", progress=False, **SHORT)


def test_a_training_that_diverged_is_a_row():
    frame = run(method="mf", protocol__lr=1e30, progress=False, **SHORT)
    assert frame["status"].tolist() == ["failed", "failed"]
    assert "no longer a finite number" in frame["reason"][0]


def test_in_a_thread_as_in_a_web_server():
    found = []
    thread = threading.Thread(target=lambda: found.append(run(method="mf", progress=False, **SHORT)))
    thread.start()
    thread.join()
    assert len(found[0]) == 2


def test_ctrl_c_is_ctrl_c(monkeypatch):
    def interrupted(*given, **keys):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("pagnn_bench.engine.execute.train", interrupted)
    for call in (run, apply):
        with pytest.raises(KeyboardInterrupt):
            call(method="mf", progress=False, n_jobs=1, **SHORT)


def test_the_masks_are_those_of_the_trials():
    graph = load_graph("synthetic", num_nodes=800)
    assert graph.num_nodes == 800
    for missing, rate, mask in (("type1", 0.5, 0), ("type2", 0.3, 2), ("degree", 0.4, 1)):
        keys = {"data__num_nodes": 800, "missing": missing, "rate": rate}
        [config] = configurations([], {**SHORT, **keys})
        expected = hide_mask(Cell.from_config(config), mask, CPU).graph.observed.dense()
        np.testing.assert_array_equal(draw_mask(graph, missing, rate, mask), expected)
    assert draw_mask(graph).mean() == pytest.approx(0.5, abs=0.1)
    np.testing.assert_array_equal(draw_mask(graph, mask=np.int64(1)), draw_mask(graph, mask=1))
    assert draw_mask(graph, "type2", 0.5, 0, "missing.exact=true").mean() == 0.5
    with pytest.raises(RequestError, match=r"^mask=-1: give a whole number"):
        draw_mask(graph, mask=-1)
    with pytest.raises(RequestError, match=r"^2 combinations: give one graph"):
        load_graph(["cora", "citeseer"])


def test_a_mask_of_a_graph_with_gaps():
    rng = np.random.default_rng(0)
    values = np.where(rng.random((40, 5)) < 0.3, np.nan, rng.random((40, 5)))
    edges = np.stack([np.arange(40), (np.arange(40) + 2) % 40])
    np.savez("mine.npz", features=values, edges=edges, labels=np.arange(40) % 2)
    graph = load_graph("custom", path="mine.npz", train_per_class=5, num_val=5)
    np.testing.assert_array_equal(draw_mask(graph, "natural"), ~np.isnan(values))
    further = draw_mask(graph, "natural", 0.5)
    assert not further[np.isnan(values)].any()
    assert 0.3 < further[~np.isnan(values)].mean() < 0.7
