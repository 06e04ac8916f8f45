"""Which method to use and how sure that is, in words."""

from __future__ import annotations

from collections.abc import Sequence

from pagnn_bench.analysis.ranking.order import Place, Ranking
from pagnn_bench.config.text import count

# Of the methods that cannot be told apart from the best, a cheaper one is advised only if it is close and much cheaper:
# after a few masks, methods that cannot be told apart may still differ by an amount that matters.
CLOSE = 1.0  # at most this many points behind the best
CHEAPER = 2.0  # at least this many times as fast
LONGEST_LIST = 5  # names in a sentence


def choose(ranking: Ranking) -> Place | None:
    """The method to use: the best, or the cheapest of those that are as good and close to it, if it is much cheaper.

    A method with failed trials is passed over where another is as good.
    """
    if not ranking.ranked:
        return None
    if not ranking.tested:
        return ranking.ranked[0]
    close = [place for place in ranking.level if (place.behind or 0.0) <= CLOSE]
    sound = [place for place in close if not place.contender.failed] or ranking.ranked[:1]
    first, cheapest = sound[0], min(sound, key=_seconds)
    return cheapest if _seconds(cheapest) * CHEAPER <= _seconds(first) else first


def _seconds(place: Place) -> float:
    return place.contender.seconds or 0.0


def advise(ranking: Ranking) -> str:
    """The closing sentence."""
    chosen, ranked = choose(ranking), ranking.ranked
    if chosen is None:
        return "No method has a finished trial, so there is nothing to choose from."
    name, accuracy = chosen.contender.label, f"{chosen.mean:.2f} %"
    if len(ranked) == 1:
        others = len(ranking.places) - 1
        none = "the other cannot be ranked" if others == 1 else f"none of the other {others} can be ranked"
        why = none if others else "no other method was run"
        return f"Only {name} can be judged, at {accuracy}: {why}, so there is nothing to compare it with."
    where = _where(ranking)
    if not ranking.tested:
        return (
            f"{name} has the highest accuracy of {len(ranked)} methods, {accuracy}, but {where} cannot tell methods "
            "apart: give more masks or seeds."
        )
    best, level = ranked[0], ranking.level
    if len(level) == 1:
        return (
            f"Use {name}: it has the highest mean of {len(ranked)} methods, {accuracy}, and {where} tell it apart from "
            f"{'the other' if len(ranked) == 2 else f'each of the other {len(ranked) - 1}'} (5 % over all comparisons "
            f"together){_failures(chosen)}."
        )
    if len(level) == len(ranked):
        caveat = f"{where} tell none of the {len(ranked)} methods apart from the best"
    else:
        caveat = (
            f"{where} do not tell {len(level)} of the {len(ranked)} methods apart ({_names(level)}), and with 95 % "
            "confidence the best is one of these"
        )
    return f"Use {name}{_reason(chosen, best)}; but {caveat}{_failures(chosen)}."


def how_to_be_surer(ranking: Ranking) -> str:
    """What more masks would cost, if these cannot tell all methods apart; else nothing."""
    number = len(ranking.masks)
    if number < 2 or len(ranking.level) < 2 or ranking.masks != tuple(range(number)):
        return ""
    return f"To be surer: masks={2 * number}, which trains the {number} further {ranking.unit}s only."


def _where(ranking: Ranking) -> str:
    """What the numbers vary over, the basis of every test."""
    if len(ranking.masks) > 1:
        return count(len(ranking.masks), ranking.unit)
    return f"the seeds on a single {ranking.unit}"


def _reason(chosen: Place, best: Place) -> str:
    if chosen is best:
        return f", which has the highest mean, {chosen.mean:.2f} %"
    behind = f"{chosen.behind:.2f} points behind {best.contender.label}, which has the highest mean, {best.mean:.2f} %"
    if best.contender.failed and _seconds(chosen) * CHEAPER > _seconds(best):
        return f", {behind}, but failed in {best.contender.failed} of {best.contender.wanted} trials"
    return f", {behind}, and {_seconds(best) / max(_seconds(chosen), 1e-9):.0f} times as fast"


def _failures(chosen: Place) -> str:
    contender = chosen.contender
    return f"; {contender.failed} of its {contender.wanted} trials failed" if contender.failed else ""


def _names(places: Sequence[Place]) -> str:
    names = [place.contender.label for place in places[:LONGEST_LIST]]
    more = len(places) - len(names)
    return f"{', '.join(names)} and {more} more" if more else ", ".join(names)
