"""A GPU a worker, tried by workers: with workers that are real and GPUs that are not."""

from __future__ import annotations

import dataclasses
import os
import signal

import pytest
import torch

from pagnn_bench.config.errors import RequestError
from pagnn_bench.engine import device
from pagnn_bench.engine.backends import cards, crew, local, with_device, work
from pagnn_bench.engine.backends.cards import VISIBLE, devices_here, hold_card
from pagnn_bench.engine.backends.nursery import cool_down
from pagnn_bench.engine.outcome import DeviceLost, Outcome
from pagnn_bench.engine.plan import Batch, Job, Settings
from tests.engine.test_plan import SETTINGS
from tests.records.common import CELL

AUTO = dataclasses.replace(SETTINGS, device="auto", n_jobs="auto", threads=1)


@pytest.fixture
def gpus(monkeypatch):
    """Torch sees so many GPUs, in this process only."""

    def make(number: int) -> None:
        monkeypatch.setattr(torch.cuda, "device_count", lambda: number)
        monkeypatch.setattr(device, "nvidia_driver", lambda: "580.65.06")

    yield make
    for cached in (cards._tried_by_workers, device.fault, device.pick_device):
        cached.cache_clear()
    cool_down()


def tries(card: int, connection) -> tuple[str | None]:
    """The first GPU is broken, whoever opens the third dies, and the others work."""
    if card == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return (None if card else "cuda:0 cannot be used: no kernel image",)


def test_workers_try_the_gpus_and_this_process_opens_none(gpus, monkeypatch, caplog):
    gpus(4)
    monkeypatch.setattr(cards, "_try", tries)
    monkeypatch.setattr(device, "_compute", lambda device: pytest.fail("opened here"))
    assert devices_here(AUTO) == ("cuda:1", "cuda:3")
    assert devices_here(AUTO) == ("cuda:1", "cuda:3")
    assert caplog.messages == [
        "device=auto: cuda:0 cannot be used: no kernel image; continuing without it.",
        "device=auto: cuda:2 cannot be used: a process that tried it died; continuing without it.",
    ], "said once"
    named = dataclasses.replace(AUTO, device="cuda:3", n_jobs=2)
    assert devices_here(named) == ("cuda:3",)


def test_a_worker_without_gpu_says_so(gpus, caplog):
    """The workers are real: what torch sees there is nothing."""
    gpus(2)
    if torch.version.cuda is not None:
        pytest.skip("torch may see a GPU here")
    with pytest.raises(RequestError, match=r"^device=cuda: torch sees no GPU here \(torch "):
        devices_here(dataclasses.replace(AUTO, device="cuda"))
    assert devices_here(AUTO) == ("cpu",)
    assert caplog.text.count("training on the CPU") == 1


def test_one_process_tries_for_itself(gpus, monkeypatch):
    gpus(1)
    opened = []
    monkeypatch.setattr(device, "_compute", lambda device: opened.append(str(device)))
    monkeypatch.setattr(torch.cuda, "set_device", lambda index: None)
    assert devices_here(AUTO) == ("cuda:0",)
    assert devices_here(dataclasses.replace(AUTO, n_jobs=1)) == ("cuda:0",)
    assert opened == ["cuda:0"]


def test_no_gpu_no_workers(gpus, monkeypatch):
    gpus(0)
    monkeypatch.setattr(device, "nvidia_driver", lambda: None)
    monkeypatch.setattr(cards, "start_worker", lambda threads: pytest.fail("a worker"))
    assert devices_here(dataclasses.replace(AUTO, n_jobs=4)) == ("cpu",)
    assert devices_here(dataclasses.replace(SETTINGS, n_jobs=4)) == ("cpu",)


@pytest.mark.parametrize(
    ("visible", "expected"),
    [(None, "1"), ("2,3", "3"), ("GPU-aa, GPU-bb", "GPU-bb"), ("MIG-1,MIG-2,MIG-3", "MIG-2")],
)
def test_a_process_sees_its_gpu_alone(monkeypatch, visible, expected):
    monkeypatch.delenv(VISIBLE, raising=False)
    if visible is not None:
        monkeypatch.setenv(VISIBLE, visible)
    monkeypatch.setitem(os.environ, "unrelated", "")  # so that the whole environment is put back
    hold_card.cache_clear()
    hold_card(1)
    hold_card(1)
    assert os.environ[VISIBLE] == expected
    hold_card.cache_clear()
    monkeypatch.delenv(VISIBLE)


def tells(job: Job, settings: Settings, connection) -> list[Outcome]:
    """What a worker sees, in place of training."""
    crew.perform = lambda job, settings, watch: [
        Outcome(
            job[0], {}, facts={"device": settings.device, "sees": os.environ.get(VISIBLE), "pid": os.getpid()}
        )
    ]
    return crew.perform_and_report(job, settings, connection)


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        (("cuda:1", "cuda:3"), {("cuda:0", "1"), ("cuda:0", "3")}),
        (("cuda:1",), {("cuda:0", "1")}),
        (("cpu",), {("cpu", None)}),
    ],
)
def test_every_worker_keeps_the_gpu_it_was_given(monkeypatch, devices, expected):
    monkeypatch.delenv(VISIBLE, raising=False)
    monkeypatch.setattr(local, "perform_and_report", tells)
    monkeypatch.setattr(local, "devices_here", lambda settings: devices)
    settings = dataclasses.replace(SETTINGS, n_jobs=2, threads=1)
    jobs = [(Batch(CELL, mask, [0], 0),) for mask in range(6)]
    facts = [outcome.facts for outcome in local.LocalBackend(settings).outcomes(jobs, lambda tasks: None)]
    assert {(fact["device"], fact["sees"]) for fact in facts} <= expected
    assert len({(fact["pid"], fact["sees"]) for fact in facts}) == len({fact["pid"] for fact in facts})
    cool_down()


def breaks(job: Job, settings: Settings, connection) -> list[Outcome]:
    """GPUs 1 and up have broken since they were tried."""
    broken = (
        {} if settings.device == "cuda:0" else {"error": "RequestError: cuda:0 is on fire.", "begun": False}
    )
    return [Outcome(job[0], {}, facts={"device": settings.device}, device_lost=bool(broken), **broken)]


def test_a_gpu_that_can_no_longer_be_opened_costs_no_batch(monkeypatch, caplog):
    """A new worker takes the place of one that lost its GPU, and may find it broken for good."""
    monkeypatch.setattr(local, "perform_and_report", breaks)
    monkeypatch.setattr(local, "devices_here", lambda settings: ("cuda:0", "cuda:1", "cuda:2"))
    settings = dataclasses.replace(SETTINGS, n_jobs=3, threads=1)
    for masks in (6, 3):
        jobs = [(Batch(CELL, mask, [0], 0),) for mask in range(masks)]
        outcomes = list(local.LocalBackend(settings).outcomes(jobs, lambda tasks: None))
        assert sorted(outcome.batch.mask for outcome in outcomes) == list(range(masks))
        assert {outcome.facts["device"] for outcome in outcomes} == {"cuda:0"}
        assert sorted(caplog.messages) == [
            f"cuda:{card} is on fire. It is left out from here on." for card in (1, 2)
        ]
        caplog.clear()
    cool_down()


def test_without_a_gpu_the_sweep_stops(monkeypatch):
    monkeypatch.setattr(local, "perform_and_report", breaks)
    monkeypatch.setattr(local, "devices_here", lambda settings: ("cuda:1",))
    settings = dataclasses.replace(SETTINGS, n_jobs=2, threads=1)
    jobs = [(Batch(CELL, mask, [0], 0),) for mask in range(3)]
    with pytest.raises(DeviceLost, match="No GPU is left"):
        list(local.LocalBackend(settings).outcomes(jobs, lambda tasks: None))
    cool_down()


def test_a_process_without_its_gpu_begins_nothing(gpus):
    gpus(1)
    [outcome] = work.perform((Batch(CELL, 0, [0], 0),), dataclasses.replace(SETTINGS, device="cuda:1"))
    assert (outcome.begun, outcome.device_lost) == (False, True)
    assert outcome.error.startswith("RequestError: device=cuda:1: torch sees 1 GPU here")


@pytest.mark.parametrize("name", ["ray", "slurm"])
def test_a_cluster_that_grants_no_gpu(name):
    def asked(device: str, gpus: float) -> Settings:
        return dataclasses.replace(SETTINGS, device=device, backend={"name": name, "gpus": gpus})

    for device_name in ("cuda", "cuda:0"):
        with pytest.raises(RequestError) as refused:
            with_device(asked(device_name, 0))
        assert (
            str(refused.value) == f"backend.gpus=0: device={device_name} needs backend.gpus=1, or device=cpu."
        )
    assert with_device(asked("auto", 0)).device == "cpu"
    assert with_device(asked("cpu", 0)).device == "cpu"
    for device_name in ("auto", "cuda"):
        assert with_device(asked(device_name, 0.25)).device == "cuda", (
            "a GPU that was granted is used, or named"
        )
        dask = dataclasses.replace(SETTINGS, device=device_name, backend={"name": "dask"})
        assert with_device(dask).device == device_name, "nobody knows what its workers have"
