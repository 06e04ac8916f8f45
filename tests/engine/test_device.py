"""Which device is taken, and what is said, on machines whose GPUs are made up."""

from __future__ import annotations

import pytest
import torch

from pagnn_bench.config.errors import RequestError
from pagnn_bench.engine import device as module
from pagnn_bench.engine.device import candidates, device_facts, fault, pick_device, settle

OLD_DRIVER = (
    "The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver by downloading "
    "and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx"
)
OLD_CARD = (
    "CUDA error: no kernel image is available for execution on the device\nCompile with TORCH_USE_CUDA_DSA"
)


@pytest.fixture
def machine(monkeypatch):
    """A machine on which torch sees GPUs, some of which raise what the list says when they are used."""

    def make(
        faults: list[str | Exception | None], cuda: str | None = "13.0", driver: str | None = "580.65.06"
    ) -> list[int]:
        opened: list[int] = []

        def compute(device: torch.device) -> None:
            opened.append(device.index)
            if reason := faults[device.index]:
                raise reason if isinstance(reason, Exception) else torch.AcceleratorError(reason)

        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        monkeypatch.setattr(torch.version, "cuda", cuda)
        monkeypatch.setattr(torch, "__version__", "2.13.0")
        monkeypatch.setattr(torch.cuda, "device_count", lambda: len(faults))
        monkeypatch.setattr(torch.cuda, "set_device", lambda index: opened.append(100 + index))
        monkeypatch.setattr(module, "nvidia_driver", lambda: driver)
        monkeypatch.setattr(module, "_compute", compute)
        for cached in (fault, pick_device):
            cached.cache_clear()
        return opened

    yield make
    for cached in (fault, pick_device):
        cached.cache_clear()


def refusal(name: str) -> str:
    with pytest.raises(RequestError) as refused:
        pick_device(name)
    return str(refused.value)


def test_the_probe_adds_up():
    module._compute(torch.device("cpu"))


def test_a_gpu_that_works_is_taken_and_opened_once(machine, caplog):
    opened = machine([None, None])
    assert [str(pick_device(name)) for name in ("auto", "cuda", "cuda:0")] == ["cuda:0"] * 3
    assert opened.count(0) == 1
    assert 1 not in opened, "the other GPU is left alone"
    assert 100 in opened, "what names no GPU means this one"
    assert str(pick_device("cuda:1")) == "cuda:1"
    assert str(pick_device("cpu")) == "cpu"
    assert not caplog.records


def test_the_first_that_works(machine, caplog):
    machine([OLD_CARD, None])
    assert str(pick_device("auto")) == "cuda:1"
    assert "cuda:0 cannot be used: CUDA error: no kernel image" in caplog.text
    assert "continuing without it" in caplog.text


def test_auto_with_a_broken_gpu_trains_on_the_cpu_and_says_so_once(machine, caplog):
    machine([OLD_DRIVER], driver="470.82.01")
    for _ in range(3):
        assert str(pick_device("auto")) == "cpu"
    [record] = caplog.records
    assert record.getMessage() == (
        "device=auto: training on the CPU, because cuda:0 cannot be used: The NVIDIA driver on your system is too old "
        "(found version 11040) (torch 2.13.0 is built for CUDA 13.0; NVIDIA driver 470.82.01): update the driver, or "
        "install a torch built for an older CUDA (docs/gpu.md says how); device=cpu hides this warning."
    )


def test_auto_on_a_machine_without_gpu_says_nothing(machine, caplog, monkeypatch):
    machine([], cuda=None, driver=None)
    assert str(pick_device("auto")) == "cpu"
    machine([])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert str(pick_device("auto")) == "cpu", "hidden on purpose"
    assert not caplog.records


def test_auto_with_a_driver_and_a_cpu_build(machine, caplog):
    machine([], cuda=None)
    assert str(pick_device("auto")) == "cpu"
    assert "torch 2.13.0 is a CPU build; NVIDIA driver 580.65.06): install a CUDA build" in caplog.text


def test_a_gpu_that_was_asked_for_is_refused_in_a_sentence(machine):
    machine([OLD_CARD])
    for name in ("cuda", "cuda:0"):
        assert refusal(name) == (
            f"device={name}: cuda:0 cannot be used: CUDA error: no kernel image is available for execution on the "
            "device (torch 2.13.0 is built for CUDA 13.0; NVIDIA driver 580.65.06): install a torch build that still "
            "supports this card (docs/gpu.md says how), or give device=cpu."
        )
    assert refusal("cuda:7").startswith("device=cuda:7: torch sees 1 GPU here (torch 2.13.0 is")
    machine([], driver=None)
    assert refusal("cuda") == (
        "device=cuda: torch sees no GPU here (torch 2.13.0 is built for CUDA 13.0; no NVIDIA driver found): install "
        "the driver of the GPU, or give device=cpu."
    )
    machine([], cuda=None, driver=None)
    assert "is a CPU build; no NVIDIA driver found): install a CUDA build" in refusal("cuda")


@pytest.mark.parametrize(
    ("error", "reason", "advice"),
    [
        (
            torch.cuda.DeferredCudaCallError("CUDA call failed lazily at initialization\n\nCUDA call was"),
            "CUDA call failed lazily at initialization",
            "check that `nvidia-smi` lists the GPU",
        ),
        (
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 MiB."),
            "CUDA out of memory",
            "stop other programs that use its memory",
        ),
        (
            torch.AcceleratorError("CUDA error: CUDA-capable device(s) is/are busy or unavailable"),
            "CUDA error: CUDA-capable device(s) is/are busy or unavailable",
            "stop other programs that use it",
        ),
        (AssertionError(), "AssertionError", "check that `nvidia-smi` lists the GPU"),
    ],
)
def test_whatever_a_gpu_fails_with_is_a_sentence(machine, error, reason, advice):
    """Torch's error of an initialisation is no RuntimeError."""
    machine([error])
    assert refusal("cuda") == (
        f"device=cuda: cuda:0 cannot be used: {reason} (torch 2.13.0 is built for CUDA 13.0; NVIDIA driver 580.65.06): "
        f"{advice}, or give device=cpu."
    )


def test_a_gpu_that_miscalculates_is_broken(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "item", lambda tensor: 5.0)
    with pytest.raises(RuntimeError, match=r"2 \+ 2 is 5 there"):
        module._compute(torch.device("cpu"))


def test_candidates_open_nothing(machine):
    opened = machine([None, None, None])
    assert (candidates("auto"), candidates("cuda"), candidates("cuda:2"), candidates("cpu")) == (
        [0, 1, 2],
        [0, 1, 2],
        [2],
        [],
    )
    assert opened == []


def test_several_gpus_of_which_one_is_broken(machine, caplog):
    machine([None, None, None])
    assert settle("cuda", {0: None, 1: "cuda:1 cannot be used: it is on fire", 2: None}) == [0, 2]
    assert caplog.messages == ["device=cuda: cuda:1 cannot be used: it is on fire; continuing without it."]


def test_records_of_a_cpu_name_the_device_only():
    assert device_facts(torch.device("cpu")) == {"device": "cpu"}


def test_records_of_a_gpu_name_it_and_its_software(machine, monkeypatch):
    machine([None])
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA A100-SXM4-40GB")
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 91002)
    device_facts.cache_clear()
    assert device_facts(torch.device("cuda", 0)) == {
        "device": "cuda:0",
        "gpu": {
            "name": "NVIDIA A100-SXM4-40GB",
            "driver": "580.65.06",
            "cuda": "13.0",
            "cudnn": 91002,
            "tf32": False,
        },
    }
    device_facts.cache_clear()


def test_tf32_is_off():
    assert not torch.backends.cuda.matmul.allow_tf32
    assert not torch.backends.cudnn.allow_tf32
