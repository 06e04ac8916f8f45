"""Which methods are compared, and how they are trained: from the words of ``compare`` to configurations of ``run``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pagnn_bench.config.catalogue import choices
from pagnn_bench.config.errors import RequestError, refuse
from pagnn_bench.config.identity import Cell, fold_training
from pagnn_bench.config.sweep import compose_combinations, with_several_values

SEEDS = 3  # our choice: 15 trials a method with 5 masks; the tests are over masks, so further masks say more than seeds
BUDGET = (
    8  # our choice: settings tried with tune=true, a third of protocol=tuned; the first is the published one
)


@dataclass
class Entrants:
    """The methods that are compared.

    Attributes:
        configs: one per method.
        left_out: name → why a method is not compared.
        notes: what was decided for the user, as sentences.
    """

    configs: list[dict[str, Any]]
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def enter(words: Sequence[str], config_dir: str | None = None) -> Entrants:
    """The methods that these words name, or all that suit the graph. Loads the graph.

    Raises:
        RequestError: the words are wrong, or no method could use them.
    """
    from pagnn_bench.engine import suitable as fitness  # brings torch

    words, tune = _tuning(words)
    given = {_key(word): word for word in words}
    _check(words, given)
    named = given.get("method", "").partition("=")[2].strip("[]")
    own = [word for word in words if _key(word).startswith("method.")]
    words = [*_defaults(given, tune), *(w for w in words if w not in own and _key(w) != "method")]
    notes = []

    def composed(*more: str) -> list[dict[str, Any]]:
        configs = compose_combinations([*words, *more], multirun=True, folder=config_dir)
        return [fold_training(config) for config in configs]

    if "missing" not in given and fitness.has_gaps(Cell.from_config(composed()[0])):
        words.append("missing=natural")
        notes.append(
            "Attributes are missing by nature, so missing=natural; another missing type would hide more."
        )
    if "masks" not in given and not fitness.masks_differ(Cell.from_config(composed()[0])):
        words.append("masks=1")
        notes.append(
            "The split is fixed and nothing is drawn, so masks=1: what another split would give remains unknown "
            "(data.split=random draws five)."
        )
    if not named:
        fit, left_out = fitness.suitable(composed(f"method={','.join(choices('method', config_dir))}"))
        fitness.check_settings(fit)
        return Entrants(fit, left_out, notes)
    configs = composed(f"method={named}")
    for name, config in zip(named.split(","), configs):
        # A setting is for the methods that have it: method=mf,module method.module=mine.MyGNN.
        if fitting := [word for word in own if _key(word).split(".")[1] in config["method"]]:
            config.update(composed(f"method={name}", *fitting)[0])
    for word in own:
        if not any(_key(word).split(".")[1] in config["method"] for config in configs):
            raise RequestError(f"{_key(word)}: none of the methods {named} has such a key.")
    fitness.check_suitable(configs)
    fitness.check_settings(configs)
    return Entrants(configs, notes=notes)


def _key(word: str) -> str:
    return word.lstrip("+~").partition("=")[0]


def _tuning(words: Sequence[str]) -> tuple[list[str], bool]:
    """The words without ``tune``, a key that ``run`` does not have, and whether it is true."""
    [*_, value] = ["false", *(word.partition("=")[2] for word in words if _key(word) == "tune")]
    if value not in ("true", "false"):
        refuse("tune", value, "choose true or false")
    return [word for word in words if _key(word) != "tune"], value == "true"


def _check(words: Sequence[str], given: dict[str, str]) -> None:
    """Refuse words that make sense to ``run`` only."""
    if "experiment" in given:
        raise RequestError(
            f"{given['experiment']}: is for `run`; compare chooses methods and masks by itself."
        )
    for word in with_several_values([word for word in words if _key(word) != "method"]):
        raise RequestError(
            f"{word}: compare takes several values of method only; tune=true chooses settings on validation data."
        )
    if "method" not in given:
        for word in (word for key, word in given.items() if key.startswith("method.")):  # the first
            raise RequestError(f"{word}: name the methods that it is meant for, such as method=mf,pagnn_n.")


def _defaults(given: dict[str, str], tune: bool) -> list[str]:
    """What ``compare`` says where the user says nothing."""
    words = [] if "seeds" in given else [f"seeds={SEEDS}"]
    if tune:
        if "protocol" in given:
            raise RequestError(
                f"tune=true: is protocol=tuned with a small budget; leave out {given['protocol']}."
            )
        return [*words, "protocol=tuned", f"protocol.tuning.budget={BUDGET}"]
    if not any(key == "protocol" or key.startswith("protocol.tuning") for key in given):
        words.append("protocol.tuning=null")  # as published, but for the search that GCNmf's authors make
    return words
