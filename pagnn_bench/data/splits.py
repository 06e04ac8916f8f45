"""Which nodes train, validate and test: a published split by name, or a seeded random one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.schema import Schema, check_values, one_of, or_null, whole
from pagnn_bench.config.text import count
from pagnn_bench.data.graph import Split


def choose_split(
    config: Mapping[str, Any],
    labels: np.ndarray,
    published: Mapping[str, Callable[[], Split]],
    classes: Sequence[Any] | None = None,
) -> Split:
    """The split that ``data.split`` names.

    Args:
        config: the ``data`` group; ``split`` is a key of ``published``, ``random``, or ``auto`` (the published split
            if any, else random).
        labels: ``[n]`` int64, -1 = unlabelled.
        published: the splits that come with the data; called only when chosen, since one may need another file.
        classes: the user's names of the C classes; None if they have only numbers.
    """
    check_values("data.", config, split_schema(published))
    choice = config["split"]
    if choice == "auto":
        choice = next(iter(published), "random")
    if choice in published:
        return published[choice]()
    return drawn_split(config, labels, config["split_seed"], classes)


def drawn_split(
    config: Mapping[str, Any], labels: np.ndarray, seed: int, classes: Sequence[Any] | None = None
) -> Split:
    """A random split of the sizes in the ``data`` group."""
    sizes = {key: config[key] for key in ("train_per_class", "num_val", "num_test")}
    return random_split(labels, seed=seed, classes=classes, **sizes)


def split_schema(published: Iterable[str]) -> Schema:
    """The keys of a split, for data that comes with these ``published`` splits."""
    return {
        "split": one_of([*published, "random", "auto"]),
        "split_seed": whole(0),
        "train_per_class": whole(1),
        "num_val": whole(1),
        "num_test": or_null(whole(1)),
    }


def random_split(
    labels: np.ndarray,
    *,
    seed: int,
    train_per_class: int,
    num_val: int,
    num_test: int | None,
    classes: Sequence[Any] | None = None,
) -> Split:
    """Draw ``train_per_class`` nodes of every class, then validation and test nodes from the rest.

    Args:
        labels: ``[n]`` int64, -1 = unlabelled (never drawn).
        seed: the same seed gives the same split.
        train_per_class, num_val: how many nodes.
        num_test: how many nodes; None takes all that remain.
        classes: the names of the C classes, for messages.
    """
    shuffled = np.random.default_rng(seed).permutation(np.flatnonzero(labels >= 0))
    train = []
    for label in range(labels.max() + 1):
        members = shuffled[labels[shuffled] == label]
        name = label if classes is None else classes[label]
        if len(members) == 0:
            raise RequestError(
                f"data.train_per_class={train_per_class}: class {name} has no nodes; number classes from 0 without "
                "gaps."
            )
        if len(members) < train_per_class:
            raise RequestError(
                f"data.train_per_class={train_per_class}: class {name} has {count(len(members), 'labelled node')}; "
                "ask for fewer."
            )
        train.append(members[:train_per_class])
    chosen = np.concatenate(train)
    rest = shuffled[~np.isin(shuffled, chosen)]
    if num_val + (num_test or 1) > len(rest):
        raise RequestError(
            f"data.num_val={num_val} and data.num_test={'all the rest' if num_test is None else num_test}: "
            f"only {len(rest)} labelled nodes remain after the training nodes; ask for fewer."
        )
    end = None if num_test is None else num_val + num_test
    return Split(*map(np.sort, (chosen, rest[:num_val], rest[num_val:end])), drawn=True)


DEVELOPMENT: Schema = {"development": whole(2), "train_per_class": whole(1)}
DRAWS = 100  # of development nodes, until every class has enough of them


def development_split(labels: np.ndarray, *, seed: int, development: int, train_per_class: int) -> Split:
    """Draw development nodes; ``train_per_class`` of each class train, the others validate. All other nodes test.

    The split of FP, PCFI, FISF and FSD-CAP. A draw with too few nodes of some class (on AmaComp every hundredth) is
    repeated.

    Args:
        labels: ``[n]`` int64, -1 = unlabelled (never drawn).
        seed: the same seed gives the same split.
        development: how many nodes train and validate.
        train_per_class: how many of each class train.
    """
    labelled = np.flatnonzero(labels >= 0)
    classes = range(labels.max() + 1)
    if not train_per_class * len(classes) < development < len(labelled):
        raise RequestError(
            f"protocol.split.development={development}: give more than the {train_per_class * len(classes)} training "
            f"nodes and fewer than the {len(labelled)} labelled nodes."
        )
    rng = np.random.default_rng(seed)
    for _ in range(DRAWS):
        shuffled = rng.permutation(labelled)
        drawn, test = shuffled[:development], shuffled[development:]
        train = np.concatenate([drawn[labels[drawn] == label][:train_per_class] for label in classes])
        if len(train) == train_per_class * len(classes):
            return Split(*map(np.sort, (train, drawn[~np.isin(drawn, train)], test)), drawn=True)
    raise RequestError(
        f"protocol.split.train_per_class={train_per_class}: some class has fewer among {development} random nodes."
    )
