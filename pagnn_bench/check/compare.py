"""The differences between two observations, and the largest that rounding explains.

Two devices sum in different orders, so float32 numbers differ in their last bits. The limits lie between the effects of
such rounding and of the mildest defect that we know, products in TF32. Both were simulated on a CPU, for every method:
each product, sum and function off by up to one unit in the last place of float32 (2⁻²³), and all dense products with
factors cut to 10 bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from pagnn_bench.check.observe import QUANTITIES, Observation

Differences = dict[str, float]

# Largest difference as a share of the largest value.
LIMITS: Differences = {
    "filled": 2e-5,  # rounding 1e-6, through dozens of diffusion steps
    "logits": 2e-5,  # rounding 5e-7, TF32 3e-4
    "gradients": 5e-5,  # rounding 4e-6, TF32 3e-4
    "losses": 1e-4,  # rounding 1e-6 after five steps; the mean over all training nodes averages it out
    "trained": 3e-3,  # rounding 1e-4: where a gradient nearly cancels, Adam divides rounding by rounding
}
# X̂ of a model trained on the device itself, with up to sixty steps of Adam: rounding 5e-4.
LEARNED = 1e-2


def differences(expected: Observation, found: Observation) -> Differences:
    """For every quantity, the largest difference as a share of the largest expected value."""
    return {name: _worst(getattr(expected, name), getattr(found, name)) for name in QUANTITIES}


def excesses(seen: Mapping[str, float], learned: bool) -> list[str]:
    """A sentence for each difference that rounding does not explain.

    Args:
        seen: the differences from the CPU.
        learned: whether the method trains a model that fills in attributes.
    """
    limits = dict(LIMITS)
    if learned:  # everything else is computed from this X̂
        limits = {name: max(limit, seen["filled"]) for name, limit in limits.items()} | {"filled": LEARNED}
    return [
        f"{name} differ by {seen[name]:.1e} (at most {limits[name]:.0e})"
        for name in QUANTITIES
        if not seen[name] <= limits[name]
    ]


def repeat_excesses(seen: Mapping[str, float], device: torch.device, learned: bool) -> list[str]:
    """A sentence for each unexplained difference between two trainings on the same device.

    A CPU repeats itself to the last bit. A GPU only does so up to rounding, because cuSPARSE and atomic sums have no
    fixed order.
    """
    if device.type != "cpu":
        return excesses(seen, learned)
    return [f"{name} differ by {value:.1e} (not at all on a CPU)" for name, value in seen.items() if value]


def _worst(expected: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> float:
    if len(expected) != len(found):
        return math.inf
    return max((_apart(a, b) for a, b in zip(expected, found)), default=0.0)


def _apart(expected: np.ndarray, found: np.ndarray) -> float:
    """max |a - b| / max |a|; infinite if shapes differ, or if only one of two numbers is finite."""
    if expected.shape != found.shape:
        return math.inf
    same = (expected == found) | (np.isnan(expected) & np.isnan(found))
    a, b = expected[~same].astype(float), found[~same].astype(float)
    if not a.size:
        return 0.0
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return math.inf
    scale = float(np.abs(expected[np.isfinite(expected)]).max())
    return float(np.abs(a - b).max()) / scale if scale else math.inf
