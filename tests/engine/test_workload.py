"""Seconds and bytes of a job grow with what makes it larger."""

from __future__ import annotations

from pagnn_bench.config.identity import Cell
from pagnn_bench.config.sweep import compose_combinations
from pagnn_bench.engine.plan import Batch, Job
from pagnn_bench.engine.workload import PROCESS, entry_seconds, peak_bytes

LARGER = ("data.num_nodes=4000", "data.num_features=6000", "method.hidden=64")


def job(*words: str, seeds: int = 20) -> Job:
    [config] = compose_combinations(["data=synthetic", "data.num_features=3000", *words])
    return (Batch(Cell.from_config(config), 0, list(range(seeds)), 0),)


def test_what_makes_a_peak_higher():
    sparse = peak_bytes(job("method=pagnn_n"))
    assert PROCESS < sparse < peak_bytes(job("method=mf")), "filled in, hence dense"
    for more in LARGER:
        assert peak_bytes(job("method=pagnn_n", more)) > sparse, more
    assert peak_bytes(job("method=pagnn_n", seeds=5)) < sparse
    assert peak_bytes(job("method=gcnmf")) > peak_bytes(job("method=mf"))


def test_what_makes_an_epoch_longer():
    def seconds(*words: str) -> float:
        return entry_seconds(job("data.train_per_class=1", *words)[0].cell)

    sparse = seconds("method=pagnn_n")
    assert 0 < sparse < seconds("method=mf") < 0.1
    assert seconds("method=pagnn_n", "data.train_per_class=20") > sparse
    for more in LARGER[1:]:
        assert seconds("method=pagnn_n", more) > sparse, more
