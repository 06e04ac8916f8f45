"""How networks are trained: the keys of ``conf/protocol``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pagnn_bench.config.identity import LATER_KEYS, PRECISIONS
from pagnn_bench.config.schema import (
    NOT_NEGATIVE,
    POSITIVE,
    Schema,
    check_group,
    group,
    one_of,
    or_null,
    whole,
)
from pagnn_bench.data.component import COMPONENTS
from pagnn_bench.data.splits import DEVELOPMENT
from pagnn_bench.missing import FEATURE_NORMS
from pagnn_bench.nn.dropout import RNGS
from pagnn_bench.training.optimiser import DECAYS
from pagnn_bench.training.stopping import RULES

PROTOCOL: Schema = {
    "lr": POSITIVE,
    "weight_decay": NOT_NEGATIVE,
    "init_gain": POSITIVE,
    "patience": whole(1),
    "max_epochs": whole(1),
    "stopping": one_of(RULES),
    "feature_norm": one_of(FEATURE_NORMS),
    "decay": one_of(DECAYS),
    "precision": one_of(PRECISIONS),
    "dropout_rng": one_of(RNGS),
}
# Applied to the graph before anything is hidden: pagnn_bench.engine.prepare.
GRAPH_KEYS: Schema = {"component": one_of(COMPONENTS), "split": or_null(group(DEVELOPMENT))}


@dataclass(frozen=True)
class Protocol:
    """How networks are trained; the fields are keys of ``conf/protocol``."""

    lr: float
    weight_decay: float
    patience: int
    max_epochs: int
    stopping: str
    init_gain: float
    feature_norm: str
    decay: str = "all"
    precision: str = "float32"
    dropout_rng: str = "host"

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Protocol:
        settings = {**LATER_KEYS["protocol"], **config}
        settings.pop("tuning")
        check_group("protocol", settings, {**PROTOCOL, **GRAPH_KEYS}, "a protocol")
        return cls(**{key: settings[key] for key in PROTOCOL})


def common(protocols: Sequence[Protocol]) -> Protocol:
    """The protocol of the first member, after a check that the others differ only where they may."""
    first = protocols[0]
    if any(replace(own, lr=first.lr, weight_decay=first.weight_decay) != first for own in protocols):
        raise ValueError("the members of a stack differ in more than learning rate and weight decay")
    return first
