"""Targets for the speed, as data: ratios of throughput, ours over the plain loop, on two CPU cores."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A ratio for some contenders; None stands for any value.

    Attributes:
        family: the kind of method: ``pagnn``, ``imputation`` or ``gcnmf``.
        data, missing: where.
        seeds: how many are stacked.
        ratio: at least this many seed-epochs per second, relative to the reference in float32.
        precision: ours.
    """

    family: str
    data: str
    missing: str | None
    seeds: int
    ratio: float
    precision: str = "float32"


TARGETS = (
    Target("pagnn", "cora", None, 20, 100),
    Target("pagnn", "citeseer", None, 20, 300),
    Target("pagnn", "amaphoto", None, 20, 15),
    Target("pagnn", "amaphoto", None, 20, 30, "bfloat16"),
    Target("pagnn", "cora", None, 1, 8),
    Target("imputation", "cora", None, 20, 30),
    Target("gcnmf", "cora", "type1", 20, 50),
    Target("gcnmf", "cora", "type2", 20, 10),
)

# A default sweep on k cores compared with one process of one thread, as a share of k; and a default sweep beside
# neighbours that keep every core busy, compared with itself alone.
SHARE_OF_CORES = 0.9
SLOWDOWN = 2.5

MET, NOT_MET = "met", "not met"

# Peak memory in MB that must not be exceeded: AmaComp for every method, the largest graph of --growth for PaGNN.
MEMORY_MB = {"amacomp": 4096.0}
GROWTH_MEMORY_MB = 8192.0


def target_of(family: str, data: str, missing: str, seeds: int, precision: str = "float32") -> Target | None:
    """The target of a contender, None if it has none."""
    wanted = (family, data, seeds, precision)
    for target in TARGETS:
        same = (target.family, target.data, target.seeds, target.precision) == wanted
        if same and target.missing in (None, missing):
            return target
    return None
