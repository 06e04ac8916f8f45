"""The search for settings: the same budget for all, on validation accuracy, on a mask of its own."""

from __future__ import annotations

import math

import pytest

from pagnn_bench.analysis.tables.results import load_results
from pagnn_bench.cli import main
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.names import Name
from pagnn_bench.config.sweep import compose_combinations
from pagnn_bench.engine.execute import Executor
from pagnn_bench.engine.tuning import choose, is_tuned, pending_tries
from pagnn_bench.records.store import Store

WORDS = [
    *("data=synthetic", "data.num_nodes=300", "data.num_val=60", "data.num_test=100", "protocol=tuned"),
    *("protocol.max_epochs=15", "protocol.tuning.budget=3", "protocol.tuning.seeds=2"),
    *("masks=2", "seeds=2", "threads=1"),
]


def tries(config: dict) -> list[dict]:
    """What a search tries first, before anything is recorded."""
    return pending_tries(config, Store("nowhere"))


def tuned(*words: str) -> dict:
    [config] = compose_combinations(["protocol=tuned", *words])
    return config


def setting(config: dict) -> tuple:
    return config["protocol"]["lr"], config["protocol"]["weight_decay"], config["method"]["dropout"]


@pytest.mark.parametrize("method", ["pagnn_n", "mf", "zero", "fp", "gcnmf", "pcfi", "mask_concat", "vae"])
def test_every_method_has_the_same_budget_and_begins_with_the_paper_s_setting(method):
    config = tuned(f"method={method}")
    tried = tries(config)
    assert is_tuned(config)
    assert len({Cell.from_config(one).hash for one in tried}) == len(tried) == 24
    [paper] = compose_combinations([f"method={method}"])
    assert tried[0]["method"] == paper["method"]
    assert setting(tried[0]) == setting(paper)
    assert {(*one["masks"], one["seeds"]) for one in tried} == {(1000, 3)}
    assert {one["protocol"]["name"] for one in tried} == {"tuning"}


def test_the_settings_are_a_function_of_the_cell():
    first, again, other = (tries(tuned(word)) for word in ("rate=0.5", "rate=0.5", "rate=0.9"))
    assert first == again
    assert list(map(setting, first[1:])) != list(map(setting, other[1:]))
    # 0.30000000000000004, as a range has it, is the rate 0.3.
    assert list(map(setting, tries(tuned("rate=0.30000000000000004")))) == list(
        map(setting, tries(tuned("rate=0.3")))
    )
    # A larger budget tries more, and the same ones first.
    assert tries(tuned("protocol.tuning.budget=30"))[:24] == first


def record(store: Store, config: dict, accuracies: list[float], status: str = "ok") -> None:
    """Tries of one setting: test accuracy is the opposite of validation accuracy."""
    records = [
        {"seed": seed, "status": status, "reason": "it diverged", "epochs": 3}
        | ({"val_acc": acc, "test_acc": 1 - acc, "val_loss": 1.0, "best_epoch": 2} if status == "ok" else {})
        for seed, acc in enumerate(accuracies)
    ]
    store.save(Cell.from_config(config), config["masks"][0], records, {}, {})


def test_the_highest_mean_validation_accuracy_is_chosen(tmp_path):
    config, store = tuned("protocol.tuning.budget=4"), Store(tmp_path)
    tried = tries(config)
    record(store, tried[0], [0.5, 0.5, 0.5])
    record(store, tried[1], [0.9, 0.1, 0.2])
    record(store, tried[2], [0.6, 0.6, 0.6])
    record(store, tried[3], [0.0, 0.0, 0.0], status="failed")
    chosen = choose(config, store)
    assert setting(chosen) == setting(tried[2])
    assert (chosen["protocol"]["name"], chosen["masks"], chosen["seeds"]) == ("tuned", 5, 20)
    assert chosen["protocol"]["tuning"]["chosen"]["protocol.lr"] == tried[2]["protocol"]["lr"]


def test_of_equal_settings_the_paper_s_own_wins(tmp_path):
    config, store = tuned("protocol.tuning.budget=3"), Store(tmp_path)
    for tried in tries(config):
        record(store, tried, [0.5, 0.5, 0.5])
    assert setting(choose(config, store)) == setting(tries(config)[0])


def test_a_mask_that_is_reported_is_not_searched_on():
    with pytest.raises(RequestError, match=r"protocol\.tuning\.mask=3: masks=5 contains it, too"):
        tries(tuned("protocol.tuning.mask=3"))


def test_a_key_that_the_method_does_not_have():
    with pytest.raises(RequestError, match=r"protocol\.tuning: pagnn_n has no key method\.alpha"):
        tries(tuned("+protocol.tuning.own.pagnn_n={method.alpha: [1]}", "~protocol.tuning.own.pagnn_m"))


def test_a_setting_that_diverges_loses_and_does_not_end_the_search(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = "protocol.tuning.space={protocol.lr: [1e+60]}"
    words = ["run", "method=zero", *WORDS, "~protocol.tuning.space", f"+{space}", "protocol.tuning.budget=2"]
    for _ in range(2):  # the second time there is nothing left to try
        assert main(words) == 0
    results = load_results(Store("results")).all
    tried = [trial.ok for r in results if r.key.protocol.startswith("tuning") for trial in r.trials]
    assert sorted(tried) == [False, False, True, True]
    [result] = [r for r in results if r.key.protocol.startswith("tuned")]
    assert result.cell.protocol["lr"] == 0.01  # as published
    assert len(result.trials) == 4


def test_a_search_that_broke_off_chooses_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pagnn_bench.engine.execute.Executor.run_together", lambda *args, **kwargs: 1 / 0)
    assert main(["run", "method=zero", *WORDS]) == 1
    assert {Name.parse(r.key.protocol).plain for r in load_results(Store("results")).all} == {"tuning"}


def test_a_search_that_broke_off_does_not_stop_the_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = Executor.run_together

    def broken(self, job, *args, **kwargs):
        return 1 / 0 if job[0].cell.method["name"] == "mf" else run(self, job, *args, **kwargs)

    monkeypatch.setattr("pagnn_bench.engine.execute.Executor.run_together", broken)
    assert main(["run", "-m", "method=mf,zero", *WORDS]) == 1
    tuned_ones = [r for r in load_results(Store("results")).all if r.key.protocol.startswith("tuned")]
    assert [(r.key.method, len(r.trials)) for r in tuned_ones] == [("zero", 4)]


def test_search_and_run_are_one_command_that_resumes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["run", "-m", "method=zero,pagnn_n", "rate=0.3,0.9", *WORDS]
    assert main([*words, "dry_run=true"]) == 0
    assert "Search on validation data: 12 cells, 24 trials: 0 done already" in capsys.readouterr().out
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "Search on validation data: 12 cells, 24 trials: 0 done already, 24 to train" in out
    assert "4 cells, 16 trials: 0 done already, 16 to train" in out
    assert main(words) == 0
    assert capsys.readouterr().out.count("all done already") == 2
    # One row per method in the table, whatever was chosen in its cells.
    results = load_results(Store("results"))
    [name] = results.families["tuned"]
    assert {result.key.method for result in results.under(name) if result.trials} == {"zero", "pagnn_n"}
    masks = {Name.parse(r.key.protocol).plain: {t.mask for t in r.trials} for r in results.all if r.trials}
    assert (masks["tuned"], masks["tuning"]) == ({0, 1}, {1000})
    assert main(["tables", "--protocol", name]) == 0
    assert "learning rate chosen per cell, weight decay chosen per cell" in capsys.readouterr().out
    assert main(["tables", "--protocol", "tuned"]) == 2
    assert name in capsys.readouterr().err


def test_ranges_are_drawn_evenly_and_rounded():
    space = "protocol.tuning.space={protocol.lr: {log_uniform: [1e-4, 1e-1]}, method.dropout: {uniform: [0.2, 0.8]}}"
    words = [
        "~protocol.tuning.space",
        f"+{space}",
        "~protocol.tuning.own.pagnn_n",
        "protocol.tuning.budget=401",
    ]
    drawn = tries(tuned(*words))[1:]
    rates = [math.log10(one["protocol"]["lr"]) for one in drawn]
    dropouts = [one["method"]["dropout"] for one in drawn]
    assert -4 <= min(rates) < -3.9
    assert -1.1 < max(rates) <= -1
    assert abs(sum(rates) / 400 + 2.5) < 0.15  # the standard error is 0.043
    assert abs(sum(dropouts) / 400 - 0.5) < 0.03  # and 0.0087
    assert all(len(f"{10**rate:.10g}".replace(".", "").strip("0")) <= 3 for rate in rates)


def test_later_rungs_train_the_better_settings_with_more_seeds(tmp_path):
    config = tuned(
        "protocol.tuning.budget=4", "protocol.tuning.seeds=1", "+protocol.tuning.rungs=[[2,2],[1,3]]"
    )
    store = Store(tmp_path)
    first = pending_tries(config, store)
    assert [one["seeds"] for one in first] == [1] * 4
    for tried, accuracy in zip(first, (0.5, 0.8, 0.7, 0.1)):
        record(store, tried, [accuracy])
    second = pending_tries(config, store)
    assert [(setting(one), one["seeds"]) for one in second] == [(setting(first[k]), 2) for k in (1, 2)]
    record(store, second[0], [0.8, 0.4])
    assert pending_tries(config, store) == second  # one setting of the rung has not ended
    record(store, second[1], [0.7, 0.7])
    [third] = pending_tries(config, store)
    assert (setting(third), third["seeds"]) == (setting(first[2]), 3)
    record(store, third, [0.7, 0.7, 0.0])
    assert pending_tries(config, store) == []
    assert setting(choose(config, store)) == setting(first[2])


@pytest.mark.parametrize("rungs", ["[[50,2]]", "[[12,1]]", "[[12,5],[13,6]]", "[3]", "[[0,3]]", "two"])
def test_rungs_get_fewer_settings_and_more_seeds(rungs):
    with pytest.raises(RequestError, match=r"protocol\.tuning\.rungs="):
        tries(tuned(f"+protocol.tuning.rungs={rungs}"))


@pytest.mark.parametrize(
    "values", ["[]", "0.5", "{log_uniform: [0, 1]}", "{uniform: [1, 0]}", "{normal: [0, 1]}"]
)
def test_a_space_has_lists_and_ranges(values):
    words = ["~protocol.tuning.space", f"+protocol.tuning.space={{protocol.lr: {values}}}"]
    with pytest.raises(RequestError, match=r"protocol\.lr="):
        tries(tuned(*words))


def test_a_search_may_belong_to_a_method_as_published():
    [config] = compose_combinations(["method=gcnmf"])
    assert is_tuned(config)
    tried = tries(config)
    assert (len(tried), tried[0]["masks"]) == (48, [0])
    assert setting(tried[0]) == (0.005, 0.01, 0.5)
    assert all(0.4 <= one["method"]["dropout"] <= 0.8 for one in tried)
    [other] = compose_combinations(["method=pagnn_n"])
    assert not is_tuned(other)


def test_a_dry_run_shows_the_search_and_all_that_needs_none(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert (
        main(["run", "-m", "method=gcnmf,zero", "data=synthetic", "masks=1", "seeds=2", "dry_run=true"]) == 0
    )
    out = capsys.readouterr().out
    assert "Search on validation data: 48 cells, 96 trials: 0 done already" in out
    assert "  gcnmf on synthetic, type1, rate 0.5: 48 settings, 0 done, 96 to train\n" in out  # not 48 lines
    assert "1 cell, 2 trials: 0 done already, 2 to train" in out
