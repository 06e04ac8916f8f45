"""The limits: rounding passes them, the mildest defect does not. Both devices are simulated, operation by operation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from pagnn_bench.check.compare import LEARNED, LIMITS, differences, excesses, repeat_excesses
from pagnn_bench.check.observe import QUANTITIES, Observation, observe, set_up
from tests.methods.test_all_methods import cell_of

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
ROUNDED = ("mm", "sum", "mean", "mul", "softmax", "exp", "div")
PRODUCTS = ("mm", "bmm", "addmm")


def _name(function) -> str:
    return function.name().partition("::")[2].partition(".")[0]


class Rounding(TorchDispatchMode):
    """Every product, sum and function is randomly off by one unit in the last place."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(0)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result, name = function(*args, **(kwargs or {})), _name(function)
        if not isinstance(result, Tensor) or result.dtype != torch.float32 or name.endswith("_"):
            return result
        if not any(word in name for word in ROUNDED):
            return result
        return result * (1 + 2**-23 * torch.randint(-1, 2, result.shape, generator=self.generator))


class TF32(TorchDispatchMode):
    """Factors of dense products have ten fractional bits."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        dense = all(arg.layout == torch.strided for arg in args if isinstance(arg, Tensor))
        if _name(function) in PRODUCTS and dense:
            args = tree_map_only(Tensor, _ten_bits, args)
        return function(*args, **(kwargs or {}))


def _ten_bits(x: Tensor) -> Tensor:
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


@pytest.mark.parametrize("name", ["pagnn_n", "mf", "gcnmf", "pcfi", "module"])
def test_rounding_passes_and_tf32_does_not(name):
    cell = cell_of(name)
    expected = observe(*set_up(cell, CPU))
    with Rounding():
        rounded = differences(expected, observe(*set_up(cell, CPU)))
    with TF32():
        cut = differences(expected, observe(*set_up(cell, CPU)))
    assert any(rounded.values()), "the simulation does something"
    assert excesses(rounded, learned=False) == []
    assert any("logits differ" in text for text in excesses(cut, learned=False))


@pytest.fixture
def seen() -> Observation:
    return Observation(*([np.array([1.0, -4.0, 2.0], dtype=np.float32)] for _ in QUANTITIES))


@pytest.mark.parametrize("name", QUANTITIES)
def test_every_quantity_is_compared(seen, name):
    other = replace(seen, **{name: [np.array([1.0, -4.0, 2.2], dtype=np.float32)]})
    found = differences(seen, other)
    assert found == {key: pytest.approx(0.05) if key == name else 0 for key in QUANTITIES}
    [sentence] = excesses(found, learned=False)
    assert sentence == f"{name} differ by 5.0e-02 (at most {LIMITS[name]:.0e})"


@pytest.mark.parametrize("wrong", [[1.0, math.nan, 2.0], [1.0, math.inf, 2.0], [1.0, -4.0]])
def test_what_is_no_number_is_wrong(seen, wrong):
    other = replace(seen, logits=[np.array(wrong, dtype=np.float32)])
    assert differences(seen, other)["logits"] == math.inf
    assert differences(seen, replace(seen, logits=[]))["logits"] == math.inf


def test_the_same_infinity_and_nan_are_the_same(seen):
    odd = replace(seen, logits=[np.array([-math.inf, math.nan, 1.0])])
    assert differences(odd, odd)["logits"] == 0


def test_what_follows_from_a_learned_filling_is_as_exact_as_the_filling():
    seen = dict.fromkeys(QUANTITIES, 0.0) | {"filled": LEARNED / 2, "logits": LEARNED / 3}
    assert excesses(seen, learned=True) == []
    assert len(excesses(seen, learned=False)) == 2
    assert excesses({**seen, "logits": LEARNED}, learned=True) != []
    assert excesses({**seen, "filled": 2 * LEARNED}, learned=True) != []


def test_a_cpu_repeats_itself_exactly_and_a_gpu_up_to_rounding():
    seen = dict.fromkeys(QUANTITIES, 0.0) | {"logits": LIMITS["logits"] / 2}
    assert repeat_excesses(seen, CPU, learned=False) == ["logits differ by 1.0e-05 (not at all on a CPU)"]
    assert repeat_excesses(seen, GPU, learned=False) == []
    assert repeat_excesses({**seen, "logits": 0.1}, GPU, learned=False) != []
