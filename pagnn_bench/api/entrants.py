"""Which methods ``compare`` trains, and how: from its words to configurations of ``run``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pagnn_bench.config.catalogue import choices
from pagnn_bench.config.errors import RequestError, refuse
from pagnn_bench.config.identity import Cell, fold_training
from pagnn_bench.config.sweep import compose_combinations, with_several_values

# Our choice: 15 trials per method with 5 masks. The tests are over masks, so more masks tell more than more seeds.
SEEDS = 3
# Our choice: settings tried with tune=true, a third of protocol=tuned; the first is the published one.
BUDGET = 8


@dataclass
class Entrants:
    """The methods that are compared.

    Attributes:
        configs: one per method.
        left_out: name → why a method is not compared.
        notes: sentences on what was decided for the user.
    """

    configs: list[dict[str, Any]]
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def enter(words: Sequence[str], config_dir: str | None = None) -> Entrants:
    """The methods named by these words, or all that suit the graph. Loads the graph.

    Raises:
        RequestError: the words are wrong, or fit no method.
    """
    from pagnn_bench.engine import suitable as fitness  # brings torch

    words, tune = _without_tune(words)
    given = {_key(word): word for word in words}
    _check(words, given)
    named = given.get("method", "").partition("=")[2].strip("[]")
    names = named.split(",")
    if "method" in given and not all(names):
        refuse(
            "method",
            named,
            "name methods, such as method=mf,pagnn_n, or leave it out for all that suit the graph",
        )
    if twice := next((name for name in names if names.count(name) > 1), None):
        refuse("method", named, f"{twice} is there twice; name each method once")
    own = [word for word in words if _key(word).startswith("method.")]
    words = [*_defaults(given, tune), *(w for w in words if w not in own and _key(w) != "method")]
    notes = []

    def composed(*more: str) -> list[dict[str, Any]]:
        configs = compose_combinations([*words, *more], multirun=True, folder=config_dir)
        return [fold_training(config) for config in configs]

    if "missing" not in given and fitness.has_gaps(Cell.from_config(composed()[0])):
        words.append("missing=natural")
        notes.append(
            "The data has missing attributes, so missing=natural; another missing type would hide more."
        )
    if "masks" not in given and not fitness.masks_differ(Cell.from_config(composed()[0])):
        words.append("masks=1")
        notes.append(
            "The split is fixed and nothing is hidden at random, so masks=1; data.split=random draws five splits."
        )
    if not named:
        fit, left_out = fitness.suitable(composed(f"method={','.join(choices('method', config_dir))}"))
        fitness.check_settings(fit)
        return Entrants(fit, left_out, notes)
    configs = composed(f"method={named}")
    for name, config in zip(names, configs):
        # A setting applies to the methods that have it: method=mf,module method.module=mine.MyGNN.
        if fitting := [word for word in own if _key(word).split(".")[1] in config["method"]]:
            config.update(composed(f"method={name}", *fitting)[0])
    for word in own:
        if not any(_key(word).split(".")[1] in config["method"] for config in configs):
            raise RequestError(f"{_key(word)}: none of the methods {named} has this key.")
    fitness.check_suitable(configs)
    fitness.check_settings(configs)
    return Entrants(configs, notes=notes)


def _key(word: str) -> str:
    return word.lstrip("+~").partition("=")[0]


def _without_tune(words: Sequence[str]) -> tuple[list[str], bool]:
    """The words without ``tune``, which ``run`` does not know, and whether it is true."""
    [*_, value] = ["false", *(word.partition("=")[2] for word in words if _key(word) == "tune")]
    if value not in ("true", "false"):
        refuse("tune", value, "choose true or false")
    return [word for word in words if _key(word) != "tune"], value == "true"


def _check(words: Sequence[str], given: dict[str, str]) -> None:
    """Refuse words that make sense to ``run`` only."""
    if "experiment" in given:
        raise RequestError(
            f"{given['experiment']}: experiments are for `run`; compare chooses methods and masks itself."
        )
    for word in with_several_values([word for word in words if _key(word) != "method"]):
        raise RequestError(
            f"{word}: compare takes several values for method only; tune=true chooses settings on validation data."
        )
    if "method" not in given:
        for word in (word for key, word in given.items() if key.startswith("method.")):  # the first
            raise RequestError(f"{word}: name the methods it is for, such as method=mf,pagnn_n.")


def _defaults(given: dict[str, str], tune: bool) -> list[str]:
    """The words for keys whose default in ``compare`` differs from ``run``."""
    words = [] if "seeds" in given else [f"seeds={SEEDS}"]
    if tune:
        if "protocol" in given:
            raise RequestError(
                f"tune=true: means protocol=tuned with a small budget; leave out {given['protocol']}."
            )
        return [*words, "protocol=tuned", f"protocol.tuning.budget={BUDGET}"]
    if not any(key == "protocol" or key.startswith("protocol.tuning") for key in given):
        words.append("protocol.tuning=null")  # as published, without the search of GCNmf's authors
    return words
